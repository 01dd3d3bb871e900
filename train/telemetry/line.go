package telemetry

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/train/foreign"
)

// line builds key=value lines. On a terminal values are padded, so that the columns of successive lines stand below each other.
type line struct {
	t     *Terminal
	b     []byte
	field []byte
}

func (l *line) start(id Identity, what string) {
	l.b = l.t.paint(l.b[:0], dim, "[Node "+strconv.Itoa(id.Node)+", Rank "+strconv.Itoa(id.Rank)+"/"+strconv.Itoa(id.World)+"]")
	l.b = append(l.b, ' ')
	l.b = l.t.paint(l.b, bold, foreign.Printable(what))
	l.b = append(l.b, ':')
}

// raw adds key=text; width is what the text is padded to on a terminal.
func (l *line) raw(key, text string, width int) {
	l.b = append(l.b, ' ')
	l.b = l.t.paint(l.b, dim, key+"=")
	text = foreign.Printable(text)
	l.b = append(l.b, text...)
	if l.t.Live() {
		for n := utf8.RuneCountInString(text); n < width; n++ {
			l.b = append(l.b, ' ')
		}
	}
}

func (l *line) num(key string, v Value, format byte, precision int, unit string, width int) {
	l.field = v.append(l.field[:0], format, precision, unit)
	l.raw(key, string(l.field), width)
}

func (l *line) general(key string, v Value, width int) { l.num(key, v, 'g', 5, "", width) }

func (l *line) seconds(key string, v Value) { l.num(key, v, 'f', 3, "s", 7) }

func (l *line) percent(key string, v Value) { l.num(key, v.Times(100), 'f', 1, "%", 6) }

func (l *line) bytes(key string, v Value) {
	if !v.Finite() {
		l.num(key, v, 'g', 5, "", 8)
		return
	}
	l.raw(key, strings.ReplaceAll(amount.Bytes(int64(v.X)), " ", ""), 8) // as everywhere, but fields end at a blank
}

// end is the finished line, without the blanks that padding left at its end.
func (l *line) end() []byte {
	for len(l.b) > 0 && l.b[len(l.b)-1] == ' ' {
		l.b = l.b[:len(l.b)-1]
	}
	l.b = append(l.b, '\n')
	return l.b
}

// orUnit is the default unit of throughput.
func orUnit(unit string) string {
	if unit == "" {
		return "samples/s"
	}
	return unit
}
