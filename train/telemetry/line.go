package telemetry

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/train/foreign"
)

// line builds key=value lines. On a terminal, values are padded so that the columns of successive lines are aligned.
type line struct {
	t     *Terminal
	b     []byte
	field []byte

	width  int // columns taken so far, without the blanks that padding puts at the end
	padded int // columns taken so far, with them
	drop   int // how many of leastFirst are left out of steps, because a line with them does not fit the terminal
	skip   int // drop while a step is rendered, else 0
}

// leastFirst are the fields of a step that a narrow terminal does without, the least important first. A pipe and metrics.jsonl have them all.
var leastFirst = []string{
	"data_time", "comm_time", "compute_time", "mfu", "wait", "npu_util", "mem", "grad_norm", "scale", "step_time", "epoch", "lr", "throughput",
}

// fit renders a line, and renders it again with fewer fields until it fits the terminal. What was left out once stays out, so that columns line up.
func (l *line) fit(render func()) {
	defer func() { l.skip = 0 }()
	l.skip = l.drop
	render()
	for l.t.Live() && l.width >= l.t.columns && l.drop < len(leastFirst) {
		l.drop++
		l.skip = l.drop
		render()
	}
}

func (l *line) start(id Identity, what string) {
	who := "[Node " + strconv.Itoa(id.Node) + ", Rank " + strconv.Itoa(id.Rank) + "/" + strconv.Itoa(id.World) + "]"
	what = foreign.Printable(what)
	l.b = l.t.paint(l.b[:0], dim, who)
	l.b = append(l.b, ' ')
	l.b = l.t.paint(l.b, bold, what)
	l.b = append(l.b, ':')
	l.width = len(who) + 1 + utf8.RuneCountInString(what) + 1
	l.padded = l.width
}

// raw adds key=text; width is the padded width of text on a terminal.
func (l *line) raw(key, text string, width int) {
	if slices.Contains(leastFirst[:l.skip], key) {
		return
	}
	l.b = append(l.b, ' ')
	l.b = l.t.paint(l.b, dim, key+"=")
	text = foreign.Printable(text)
	l.b = append(l.b, text...)
	n := utf8.RuneCountInString(text)
	l.width = l.padded + 1 + utf8.RuneCountInString(key) + 1 + n
	l.padded = l.width
	if l.t.Live() {
		for ; n < width; n++ {
			l.b = append(l.b, ' ')
			l.padded++
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
	l.raw(key, strings.ReplaceAll(amount.Bytes(int64(v.X)), " ", ""), 8) // as everywhere, but without spaces, which separate fields
}

// end is the finished line, without trailing padding.
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
