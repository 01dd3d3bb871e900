package telemetry

import (
	"bytes"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
)

func TestLog(t *testing.T) {
	var step atomic.Int64
	say := func(rank int, opt LogOptions) string {
		var out bytes.Buffer
		l := slog.New(NewHandler(NewTerminal(&out, 0, true), Identity{Rank: rank, World: 2}, opt))
		l.Debug("detail")
		l.Info("loaded", "images", 1200, "dir", "my pictures")
		w := l.With("file", "a.jpg").WithGroup("data")
		w.Warn("cannot decode", "index", 7, slog.Group("at", "byte", 3))
		l.Error("stopped", "err", errors.New("first line\nhint: second"), "empty", "")
		l.Error("two lines\nhint: here")
		return out.String()
	}
	for _, c := range []struct {
		rank int
		step int64
		opt  LogOptions
		want string
	}{
		{0, 0, LogOptions{Step: &step}, `loaded images=1200 dir="my pictures"
warning: cannot decode file=a.jpg data.index=7 data.at.byte=3
error: stopped err="first line\nhint: second" empty=""
error: two lines
hint: here
`},
		{1, 12, LogOptions{Step: &step}, `[rank 1] warning: cannot decode file=a.jpg data.index=7 data.at.byte=3 step=12
[rank 1] error: stopped err="first line\nhint: second" empty="" step=12
[rank 1] error: two lines
[rank 1] hint: here step=12
`},
		{1, 0, LogOptions{NoPrefix: true, Level: slog.LevelError}, `error: stopped err="first line\nhint: second" empty=""
error: two lines
hint: here
`},
		{1, 0, LogOptions{Level: slog.LevelDebug}, `[rank 1] debug: detail
[rank 1] loaded images=1200 dir="my pictures"
[rank 1] warning: cannot decode file=a.jpg data.index=7 data.at.byte=3
[rank 1] error: stopped err="first line\nhint: second" empty=""
[rank 1] error: two lines
[rank 1] hint: here
`},
	} {
		step.Store(c.step)
		if got := say(c.rank, c.opt); got != c.want {
			t.Errorf("rank %d prints\n%s\nwant\n%s", c.rank, got, c.want)
		}
	}
}
