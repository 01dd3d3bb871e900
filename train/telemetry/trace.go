package telemetry

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"
)

// TraceOptions configure a trace.
type TraceOptions struct {
	// Origin is time 0 of the trace. Use the same one on all ranks, so that their files can be joined; zero means now.
	Origin time.Time
	// Offset is added to the times of this rank: the lag of its clock behind rank 0's, measured at the start.
	Offset time.Duration
	// Limit is the maximum number of spans to record, so that a long run does not fill the disk; 0 means 1,000,000.
	Limit int
}

// Trace writes spans in Chrome's trace format, for Perfetto or chrome://tracing: a process is a rank, a row is a track. It is an array whose closing
// bracket may be missing, so that the file of a killed run can be opened too.
type Trace struct {
	f      *os.File
	w      *bufio.Writer
	id     Identity
	opt    TraceOptions
	tracks map[string]int
	n      int
	b      []byte
}

// NewTrace creates the file.
func NewTrace(path string, id Identity, opt TraceOptions) (*Trace, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	if opt.Limit == 0 {
		opt.Limit = 1_000_000
	}
	opt.Origin = orNow(opt.Origin)
	t := &Trace{f: f, w: bufio.NewWriterSize(f, 64<<10), id: id, opt: opt, tracks: map[string]int{}}
	t.w.WriteString("[\n")
	t.meta("process_name", 0, "name", fmt.Sprintf("rank %d", id.Rank))
	t.meta("process_labels", 0, "labels", fmt.Sprintf("node %d, clock %+.3fms", id.Node, float64(opt.Offset)/1e6))
	t.meta("process_sort_index", 0, "sort_index", id.Rank)
	for _, track := range []string{"host", "compute", "comm", "io"} { // fixes the order of the usual tracks
		t.track(track)
	}
	if err := t.w.Flush(); err != nil {
		f.Close()
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	return t, nil
}

// meta writes a metadata event.
func (t *Trace) meta(name string, tid int, key string, value any) {
	raw, _ := json.Marshal(map[string]any{"name": name, "ph": "M", "pid": t.id.Rank, "tid": tid, "args": map[string]any{key: value}})
	t.w.Write(append(raw, ",\n"...))
}

// track returns the row of a track.
func (t *Trace) track(name string) int {
	tid, ok := t.tracks[name]
	if !ok {
		tid = len(t.tracks)
		t.tracks[name] = tid
		t.meta("thread_name", tid, "name", name)
		t.meta("thread_sort_index", tid, "sort_index", tid)
	}
	return tid
}

// micros adds microseconds since the origin, with three decimals.
func micros(b []byte, d time.Duration) []byte {
	return strconv.AppendFloat(b, float64(d.Nanoseconds())/1e3, 'f', 3, 64)
}

// Emit writes spans as bars, and warnings, evaluations and checkpoints as instant marks.
func (t *Trace) Emit(e Event) error {
	switch e := e.(type) {
	case Span:
		return t.span(e)
	case Step:
		return t.mark("step "+strconv.FormatInt(e.Step, 10), e.Time)
	case Checkpoint:
		return t.mark("checkpoint", e.Time)
	case Eval:
		return t.mark("eval", e.Time)
	case Warning:
		return t.mark("warning: "+e.Text, e.Time)
	case RunEnd:
		if err := t.w.Flush(); err != nil {
			return fmt.Errorf("telemetry: %w", err)
		}
	}
	return nil
}

func (t *Trace) span(e Span) error {
	if t.n++; t.n > t.opt.Limit {
		return nil
	}
	tid := t.track(e.Track)
	b := append(t.b[:0], `{"name":`...)
	b = appendString(b, e.Name)
	b = append(b, `,"cat":`...)
	b = appendString(b, e.Cat)
	b = append(b, `,"ph":"X","ts":`...)
	b = micros(b, e.Begin.Sub(t.opt.Origin)+t.opt.Offset)
	b = append(b, `,"dur":`...)
	b = micros(b, e.Dur)
	b = t.place(b, tid)
	if len(e.Args) > 0 {
		b = append(b, `,"args":{`...)
		for i, a := range e.Args {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, a.Key), ':')
			b = appendString(b, a.Value)
		}
		b = append(b, '}')
	}
	return t.put(b)
}

// mark writes an instant event on the host's row.
func (t *Trace) mark(name string, at time.Time) error {
	if t.n++; t.n > t.opt.Limit {
		return nil
	}
	b := append(t.b[:0], `{"name":`...)
	b = appendString(b, name)
	b = append(b, `,"ph":"i","s":"p","ts":`...)
	b = micros(b, orNow(at).Sub(t.opt.Origin)+t.opt.Offset)
	return t.put(t.place(b, t.track("host")))
}

func (t *Trace) place(b []byte, tid int) []byte {
	b = append(b, `,"pid":`...)
	b = strconv.AppendInt(b, int64(t.id.Rank), 10)
	b = append(b, `,"tid":`...)
	return strconv.AppendInt(b, int64(tid), 10)
}

func (t *Trace) put(b []byte) error {
	t.b = append(b, "},\n"...)
	if _, err := t.w.Write(t.b); err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	return nil
}

// appendString adds a JSON string. A name without anything to escape, which is nearly every name, costs no allocation.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			raw, _ := json.Marshal(s)
			return append(b, raw...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// Close terminates the array and closes the file.
func (t *Trace) Close() error {
	if t.f == nil {
		return nil
	}
	if t.n > t.opt.Limit {
		t.meta("trace is full", 0, "left_out", t.n-t.opt.Limit)
	}
	// Every event ends in a comma, so the last one before the bracket must come without.
	raw, _ := json.Marshal(map[string]any{"name": "end", "ph": "M", "pid": t.id.Rank, "tid": 0, "args": map[string]any{"spans": t.n}})
	t.w.Write(append(raw, "\n]\n"...))
	err := t.w.Flush()
	if cerr := t.f.Close(); err == nil {
		err = cerr
	}
	t.f = nil
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	return nil
}
