package telemetry

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
)

// supersededName is the file for events of abandoned steps: metrics.superseded.jsonl for metrics.jsonl.
func supersededName(path string) string {
	const ext = ".jsonl"
	return strings.TrimSuffix(path, ext) + ".superseded" + ext
}

// supersede moves the events of steps after the given one, and lines that a crash cut short, to the end of another file. Nothing is lost whenever the
// machine stops: the moved events are durable there before a new file without them replaces the old one. A crash in between leaves them in both; the
// next start repeats the move.
func (j *JSONL) supersede(step int64) error {
	st, err := j.f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return err
	}
	behind := false
	err = j.lines(func(line []byte) error {
		behind = behind || after(line, step)
		return nil
	})
	if err != nil || !behind {
		return err
	}
	err = into(supersededName(j.path), os.O_APPEND, func(w io.Writer) error {
		return j.lines(func(line []byte) error {
			if !after(line, step) {
				return nil
			}
			_, err := w.Write(line)
			return err
		})
	})
	if err != nil {
		return err
	}
	tmp := j.path + ".tmp"
	err = into(tmp, os.O_TRUNC, func(w io.Writer) error {
		return j.lines(func(line []byte) error {
			if after(line, step) {
				return nil
			}
			_, err := w.Write(line)
			return err
		})
	})
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, j.path); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	f, err := os.OpenFile(j.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	err = j.f.Close()
	j.f = f
	return err
}

// lines yields every line, including its newline.
func (j *JSONL) lines(each func(line []byte) error) error {
	r := bufio.NewReader(io.NewSectionReader(j.f, 0, 1<<62))
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			if err := each(line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// after reports whether a line is an event of a step after the given one, or not an event at all.
func after(line []byte, step int64) bool {
	var e struct {
		Step int64 `json:"step"`
	}
	return json.Unmarshal(line, &e) != nil || e.Step > step
}

// into writes a file and makes it durable.
func into(path string, mode int, fill func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|mode, 0o666)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	err = fill(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
