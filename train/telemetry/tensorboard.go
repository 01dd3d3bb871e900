package telemetry

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"
)

// TensorBoard writes an event file for TensorBoard: curves under train/, perf/ and the name of each evaluation, and the recipe as text. Each event is
// written at once.
type TensorBoard struct {
	f       *os.File
	payload []byte
	summary []byte
	value   []byte
	record  []byte
}

// NewTensorBoard creates the directory and a new event file in it. A resumed run gets a separate file: the last one may end in a torn record, at
// which readers stop.
func NewTensorBoard(dir string) (*TensorBoard, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	now := time.Now()
	for n := range 1000 {
		name := fmt.Sprintf("events.out.tfevents.%d.%s.%d.%d", now.Unix(), host, os.Getpid(), n)
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("telemetry: %w", err)
		}
		t := &TensorBoard{f: f}
		// field 3 is the version of the file; it must be in the first record
		t.payload = protoString(t.begin(now, 0), 3, "brain.Event:2")
		if err := t.write(); err != nil {
			f.Close()
			return nil, err
		}
		return t, nil
	}
	return nil, fmt.Errorf("telemetry: no unused name for an event file in %s", dir)
}

// begin starts an Event: 1 wall_time, 2 step.
func (t *TensorBoard) begin(at time.Time, step int64) []byte {
	b := protoFixed64(t.payload[:0], 1, math.Float64bits(float64(at.Unix())+float64(at.Nanosecond())/1e9))
	if step != 0 {
		b = protoVarint(b, 2, uint64(step))
	}
	t.summary = t.summary[:0]
	return b
}

func (t *TensorBoard) write() error {
	t.record = appendRecord(t.record[:0], t.payload)
	if _, err := t.f.Write(t.record); err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	return nil
}

// scalar adds a Summary.Value: 1 tag, 2 simple_value. An unknown value adds no point to the curve.
func (t *TensorBoard) scalar(tag string, v Value) {
	if !v.OK {
		return
	}
	t.value = protoString(t.value[:0], 1, tag)
	t.value = protoFixed32(t.value, 2, math.Float32bits(float32(v.X)))
	t.summary = protoBytes(t.summary, 1, t.value)
}

// purge tells readers to discard the points of all earlier files from a step on, because a resumed run repeats these steps. It is an Event with field
// 7, a SessionLog {1 status = 1 (START)}, as TensorFlow and PyTorch's purge_step write it.
func (t *TensorBoard) purge(at time.Time, step int64) error {
	t.payload = protoBytes(t.begin(at, step), 7, protoVarint(nil, 1, 1))
	return t.write()
}

// text adds a Summary.Value for the text plugin: 1 tag, 8 tensor {1 dtype = 7 (string), 2 shape {}, 8 string_val}, 9 metadata {1 plugin_data {1 name}}.
func (t *TensorBoard) text(tag, text string) {
	tensor := protoBytes(protoVarint(nil, 1, 7), 2, nil)
	tensor = protoString(tensor, 8, text)
	t.value = protoString(t.value[:0], 1, tag)
	t.value = protoBytes(t.value, 8, tensor)
	t.value = protoBytes(t.value, 9, protoBytes(nil, 1, protoString(nil, 1, "text")))
	t.summary = protoBytes(t.summary, 1, t.value)
}

// end puts the summary (field 5) into the event and writes it.
func (t *TensorBoard) end() error {
	if len(t.summary) == 0 {
		return nil
	}
	t.payload = protoBytes(t.payload, 5, t.summary)
	return t.write()
}

// Emit writes steps, evaluations, epochs and the recipe.
func (t *TensorBoard) Emit(e Event) error {
	switch e := e.(type) {
	case RunStart:
		if err := t.purge(orNow(e.Time), e.Step+1); err != nil {
			return err
		}
		t.payload = t.begin(orNow(e.Time), 0)
		if e.Recipe != "" {
			t.text("recipe", "```\n"+e.Recipe+"\n```")
		}
	case Step:
		t.step(e)
	case Eval:
		name := e.Name
		if name == "" {
			name = "eval"
		}
		t.payload = t.begin(orNow(e.Time), e.Step)
		t.scalar(name+"/loss", e.Loss)
		t.metrics(name, e.Metrics)
	case Epoch:
		t.payload = t.begin(orNow(e.Time), e.Step)
		t.scalar("epoch/loss", e.Loss)
		t.metrics("epoch", e.Metrics)
	default:
		return nil
	}
	return t.end()
}

func (t *TensorBoard) metrics(name string, m []Metric) {
	for _, x := range m {
		t.scalar(name+"/"+x.Name, x.Value)
	}
}

func (t *TensorBoard) step(e Step) {
	t.payload = t.begin(orNow(e.Time), e.Step)
	t.scalar("train/loss", e.Loss)
	t.scalar("train/lr", e.LR)
	t.scalar("train/grad_norm", e.Norm)
	t.scalar("train/loss_scale", e.Scale)
	t.scalar("train/epoch", e.Epoch)
	t.metrics("train", e.Metrics)
	t.scalar("perf/throughput", e.Throughput)
	t.scalar("perf/step_time", e.Took)
	t.scalar("perf/compute_time", e.Compute)
	t.scalar("perf/comm_time", e.Comm)
	t.scalar("perf/wait_time", e.Wait)
	t.scalar("perf/data_time", e.Data)
	t.scalar("perf/npu_util", e.Util)
	t.scalar("perf/mfu", e.MFU)
	t.scalar("perf/memory", e.Memory)
}

// Close closes the file.
func (t *TensorBoard) Close() error {
	if t.f == nil {
		return nil
	}
	err := t.f.Close()
	t.f = nil
	return err
}
