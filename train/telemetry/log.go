package telemetry

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/gotrain/gotrain/train/foreign"
)

// LogOptions configure a Handler.
type LogOptions struct {
	// Level is the lowest level that rank 0 prints; nil means slog.LevelInfo. Other ranks print only warnings and errors, unless it is below info
	// (debugging).
	Level slog.Leveler
	// NoPrefix omits "[rank 1] ", for a supervisor that prefixes every line itself.
	NoPrefix bool
	// Step, if set, holds the current step; a number above 0 is added to each record as step=.
	Step *atomic.Int64
}

// NewHandler prints log records as lines on a terminal: the message, then key=value pairs; warnings and errors are marked in front. Ranks other than
// 0 prefix each line with "[rank N] " and print nothing below warnings, so that a job of many ranks reads like one program.
func NewHandler(t *Terminal, id Identity, opt LogOptions) slog.Handler {
	h := &handler{t: t, opt: opt, level: slog.LevelInfo}
	if opt.Level != nil {
		h.level = opt.Level
	}
	if id.Rank != 0 {
		if l := h.level.Level(); l >= slog.LevelInfo {
			h.level = max(l, slog.LevelWarn)
		}
		if !opt.NoPrefix {
			h.prefix = "[rank " + strconv.Itoa(id.Rank) + "] "
		}
	}
	return h
}

type handler struct {
	t      *Terminal
	opt    LogOptions
	level  slog.Leveler
	prefix string
	attrs  []byte // formatted, from WithAttrs
	group  string // with a trailing dot
}

func (h *handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	b := append(make([]byte, 0, 256), h.prefix...)
	switch {
	case r.Level >= slog.LevelError:
		b = append(h.t.paint(b, red, "error:"), ' ')
	case r.Level >= slog.LevelWarn:
		b = append(h.t.paint(b, yellow, "warning:"), ' ')
	case r.Level < slog.LevelInfo:
		b = append(h.t.paint(b, dim, "debug:"), ' ')
	}
	// A message of several lines, such as an error with a hint, has the prefix on each line.
	b = append(b, strings.ReplaceAll(foreign.Printable(r.Message), "\n", "\n"+h.prefix)...)
	b = append(b, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		b = h.attr(b, h.group, a)
		return true
	})
	if h.opt.Step != nil {
		if n := h.opt.Step.Load(); n > 0 {
			b = h.attr(b, "", slog.Int64("step", n))
		}
	}
	_, err := h.t.Write(append(b, '\n'))
	return err
}

// attr adds one pair, or the pairs of a group.
func (h *handler) attr(b []byte, group string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if a.Equal(slog.Attr{}) {
		return b
	}
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, x := range v.Group() {
			b = h.attr(b, group, x)
		}
		return b
	}
	b = append(b, ' ')
	b = h.t.paint(b, dim, group+a.Key+"=")
	text := v.String()
	if text == "" || strings.ContainsAny(text, " \t\r\n\"=") || foreign.Printable(text) != text {
		return strconv.AppendQuote(b, text)
	}
	return append(b, text...)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *h
	out.attrs = slices.Clone(h.attrs)
	for _, a := range attrs {
		out.attrs = h.attr(out.attrs, h.group, a)
	}
	return &out
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	out := *h
	out.group = h.group + name + "."
	return &out
}
