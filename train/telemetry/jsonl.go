package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// JSONL appends events to a file, one JSON object per line, each written at once. Every object has "event" (the kind) and "time". Unknown values are
// null; NaN and infinities are strings, because JSON has no numbers for them.
//
// A resumed run repeats steps that a killed run has already logged. Its RunStart moves the events of those steps to another file (see supersede), so
// that the file has every step once.
type JSONL struct {
	f    *os.File
	path string
}

// NewJSONL opens or creates the file. If the last line of an earlier run was cut short, it is terminated first.
func NewJSONL(path string) (*JSONL, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	if err := endLastLine(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	return &JSONL{f, path}, nil
}

func endLastLine(f *os.File) error {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 || !st.Mode().IsRegular() {
		return err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, st.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = f.Write([]byte{'\n'})
	return err
}

// Emit appends the event. Spans belong in a trace and are skipped.
func (j *JSONL) Emit(e Event) error {
	raw, err := marshal(e)
	if err != nil || raw == nil {
		return err
	}
	if start, ok := e.(RunStart); ok {
		if err = j.supersede(start.Step); err != nil {
			err = fmt.Errorf("telemetry: events of repeated steps remain in %s: %w", j.path, err)
		}
	}
	if _, werr := j.f.Write(append(raw, '\n')); werr != nil {
		err = errors.Join(err, fmt.Errorf("telemetry: %w", werr))
	}
	return err
}

// marshal puts the kind before the event's fields; it returns nil for kinds that are not logged.
func marshal(e Event) ([]byte, error) {
	switch x := e.(type) {
	case RunStart:
		x.Time = stamp(x.Time)
		return json.Marshal(struct {
			Event string `json:"event"`
			RunStart
		}{e.Kind(), x})
	case Step:
		x.Time, x.Unit = stamp(x.Time), orUnit(x.Unit)
		return json.Marshal(struct {
			Event string `json:"event"`
			Step
		}{e.Kind(), x})
	case Kernels:
		x.Time = stamp(x.Time)
		return json.Marshal(struct {
			Event string `json:"event"`
			Kernels
		}{e.Kind(), x})
	case Eval:
		x.Time = stamp(x.Time)
		return json.Marshal(struct {
			Event string `json:"event"`
			Eval
		}{e.Kind(), x})
	case Epoch:
		x.Time = stamp(x.Time)
		return json.Marshal(struct {
			Event string `json:"event"`
			Epoch
		}{e.Kind(), x})
	case Checkpoint:
		x.Time = stamp(x.Time)
		return json.Marshal(struct {
			Event string `json:"event"`
			Checkpoint
		}{e.Kind(), x})
	case Warning:
		x.Time = stamp(x.Time)
		return json.Marshal(struct {
			Event string `json:"event"`
			Warning
		}{e.Kind(), x})
	case RunEnd:
		x.Time, x.Unit = stamp(x.Time), orUnit(x.Unit)
		return json.Marshal(struct {
			Event string `json:"event"`
			RunEnd
		}{e.Kind(), x})
	}
	return nil, nil
}

func stamp(t time.Time) time.Time { return orNow(t).UTC().Truncate(time.Millisecond) }

// Close closes the file.
func (j *JSONL) Close() error {
	if j.f == nil {
		return nil
	}
	err := j.f.Close()
	j.f = nil
	return err
}
