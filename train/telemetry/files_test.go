package telemetry

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestJSONL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	must(t, os.WriteFile(path, []byte(`{"event":"step","st`), 0o666)) // an earlier run was killed here
	j, err := NewJSONL(path)
	must(t, err)
	bad := Step{Time: at, Step: 2, Total: 100, Loss: Known(math.Inf(1)), LR: Known(0.1)}
	for _, e := range []Event{full(), bad, Span{}, Checkpoint{Time: at, Step: 2, Path: "p", Bytes: 7}, Warning{Time: at, Text: "a\nb"}} {
		must(t, j.Emit(e))
	}
	raw, err := os.ReadFile(path) // before Close: every line is out at once
	must(t, err)
	want := `{"event":"step","st
{"event":"step","time":"2026-01-02T03:04:05.678Z","step":1,"total":100,"epoch":0.0123,"loss":2.302585,"lr":0.1,"grad_norm":1.25,"loss_scale":null,"throughput":123.44,"unit":"samples/s","step_time":0.4,"compute_time":0.3451,"comm_time":0.012,"wait_time":0.001,"data_time":0,"npu_util":0.9712,"mfu":0.41,"memory":1610612736,"metrics":[{"name":"top1","value":0.25}]}
{"event":"step","time":"2026-01-02T03:04:05.678Z","step":2,"total":100,"epoch":null,"loss":"+Inf","lr":0.1,"grad_norm":null,"loss_scale":null,"throughput":null,"unit":"samples/s","step_time":null,"compute_time":null,"comm_time":null,"wait_time":null,"data_time":null,"npu_util":null,"mfu":null,"memory":null}
{"event":"checkpoint","time":"2026-01-02T03:04:05.678Z","step":2,"path":"p","bytes":7,"time_s":null}
{"event":"warning","time":"2026-01-02T03:04:05.678Z","text":"a\nb"}
`
	if string(raw) != want {
		t.Errorf("file is\n%s\nwant\n%s", raw, want)
	}
	must(t, j.Close())
	must(t, j.Close())
	for _, e := range []Event{RunStart{Name: "x"}, Eval{Items: 3, Of: 4}, Epoch{Epoch: 1}, RunEnd{Reason: "done"}} {
		raw, err := marshal(e)
		must(t, err)
		var back map[string]any
		must(t, json.Unmarshal(raw, &back))
		if back["event"] != e.Kind() || back["time"] == nil {
			t.Errorf("%s is %s", e.Kind(), raw)
		}
	}
}

func TestValueRoundTrip(t *testing.T) {
	for _, v := range []Value{{}, Known(0), Known(-1.5), Known(math.Inf(-1)), Known(math.NaN())} {
		raw, err := json.Marshal(v)
		must(t, err)
		var back Value
		must(t, json.Unmarshal(raw, &back))
		if fmt.Sprint(back) != fmt.Sprint(v) {
			t.Errorf("%v → %s → %v", v, raw, back)
		}
	}
}

// records is an independent reader of TFRecord files, written from the description of the format.
func records(t *testing.T, raw []byte) [][]byte {
	t.Helper()
	check := func(b []byte, want uint32) {
		c := crc32.Checksum(b, crc32.MakeTable(0x82f63b78))
		if got := (c >> 15) | (c << 17); got+0xa282ead8 != want {
			t.Fatalf("checksum %08x, want %08x", got+0xa282ead8, want)
		}
	}
	var out [][]byte
	for len(raw) > 0 {
		n := binary.LittleEndian.Uint64(raw)
		check(raw[:8], binary.LittleEndian.Uint32(raw[8:]))
		body := raw[12 : 12+n]
		check(body, binary.LittleEndian.Uint32(raw[12+n:]))
		out = append(out, body)
		raw = raw[16+n:]
	}
	return out
}

// fields reads one protobuf message: field number → values, numbers as uint64, the rest as []byte.
func fields(t *testing.T, b []byte) map[int][]any {
	t.Helper()
	out := map[int][]any{}
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatal("bad key")
		}
		b = b[n:]
		f := int(key >> 3)
		switch key & 7 {
		case 0:
			v, n := binary.Uvarint(b)
			out[f], b = append(out[f], v), b[n:]
		case 1:
			out[f], b = append(out[f], binary.LittleEndian.Uint64(b)), b[8:]
		case 2:
			l, n := binary.Uvarint(b)
			out[f], b = append(out[f], b[n:n+int(l)]), b[n+int(l):]
		case 5:
			out[f], b = append(out[f], uint64(binary.LittleEndian.Uint32(b))), b[4:]
		default:
			t.Fatalf("wire type %d", key&7)
		}
	}
	return out
}

func TestTensorBoard(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tb")
	tb, err := NewTensorBoard(dir)
	must(t, err)
	second, err := NewTensorBoard(dir) // the same second, the same process
	must(t, err)
	must(t, second.Close())
	must(t, tb.Emit(RunStart{Time: at, Step: 40, Recipe: "lr = 0.1"}))
	must(t, tb.Emit(Step{Time: at, Step: 300, Loss: Known(2.5), LR: Known(0.1), Metrics: []Metric{{"top1", Known(0.5)}}}))
	must(t, tb.Emit(Eval{Time: at, Step: 300, Name: "val", Metrics: []Metric{{"top1", Known(0.75)}}}))
	must(t, tb.Emit(Step{Time: at, Step: 301})) // nothing known, nothing written
	must(t, tb.Emit(Span{}))
	names, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	must(t, err)
	if len(names) != 2 || !strings.HasSuffix(names[0], fmt.Sprintf(".%d.0", os.Getpid())) {
		t.Fatalf("files are %v", names)
	}
	raw, err := os.ReadFile(names[0])
	must(t, err)
	recs := records(t, raw)
	if len(recs) != 5 {
		t.Fatalf("%d records, want 5", len(recs))
	}
	// TensorBoard discards points of other files from step 41 on: SessionLog.status = START.
	if purge := fields(t, recs[1]); purge[2][0].(uint64) != 41 || fields(t, purge[7][0].([]byte))[1][0].(uint64) != 1 {
		t.Errorf("second record is %v", purge)
	}
	recs = append(recs[:1], recs[2:]...)
	if first := fields(t, recs[0]); string(first[3][0].([]byte)) != "brain.Event:2" || first[1] == nil {
		t.Errorf("first record is %v", first)
	}
	text := fields(t, fields(t, fields(t, recs[1])[5][0].([]byte))[1][0].([]byte))
	tensor := fields(t, text[8][0].([]byte))
	plugin := fields(t, fields(t, text[9][0].([]byte))[1][0].([]byte))
	if string(text[1][0].([]byte)) != "recipe" || tensor[1][0].(uint64) != 7 || string(tensor[8][0].([]byte)) != "```\nlr = 0.1\n```" ||
		string(plugin[1][0].([]byte)) != "text" {
		t.Errorf("recipe is %v %v %v", text, tensor, plugin)
	}
	for i, want := range map[int]string{2: "300 train/loss=2.5 train/lr=0.1 train/top1=0.5", 3: "300 val/top1=0.75"} {
		ev := fields(t, recs[i])
		if got := math.Float64frombits(ev[1][0].(uint64)); math.Abs(got-1767323045.678) > 1e-6 {
			t.Errorf("wall time is %f", got)
		}
		got := fmt.Sprint(ev[2][0])
		for _, v := range fields(t, ev[5][0].([]byte))[1] {
			val := fields(t, v.([]byte))
			got += fmt.Sprintf(" %s=%v", val[1][0], math.Float32frombits(uint32(val[2][0].(uint64))))
		}
		if got != want {
			t.Errorf("record %d is %s, want %s", i, got, want)
		}
	}
	must(t, tb.Close())
	must(t, tb.Close())
}

func TestTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	tr, err := NewTrace(path, Identity{Node: 1, Rank: 3, World: 4}, TraceOptions{Origin: at, Offset: time.Microsecond, Limit: 3})
	must(t, err)
	must(t, tr.Emit(Span{Name: `conv "1"`, Cat: "forward", Track: "compute", Begin: at.Add(1500 * time.Nanosecond),
		Dur: 2 * time.Millisecond, Args: []Fact{{"flops", "12"}}}))
	must(t, tr.Emit(Span{Name: "bucket 0", Cat: "allreduce", Track: "wire", Begin: at.Add(time.Millisecond), Dur: time.Microsecond}))
	must(t, tr.Emit(Step{Step: 7, Time: at}))
	must(t, tr.Emit(Span{Name: "one too many", Track: "host", Begin: at}))
	must(t, tr.Emit(RunEnd{}))
	killed, err := os.ReadFile(path)
	must(t, err)
	must(t, tr.Close())
	must(t, tr.Close())
	raw, err := os.ReadFile(path)
	must(t, err)
	// The file of a killed run lacks the bracket, but is otherwise an array of whole events.
	for _, b := range [][]byte{raw, append(bytes.TrimRight(killed, ",\n"), ']')} {
		var events []map[string]any
		must(t, json.Unmarshal(b, &events))
		var got []string
		for _, e := range events {
			if e["pid"] != 3.0 {
				t.Errorf("pid of %v", e)
			}
			switch e["ph"] {
			case "X":
				got = append(got, fmt.Sprintf("%v %v %v+%v row %v %v", e["name"], e["cat"], e["ts"], e["dur"], e["tid"], e["args"]))
			case "i":
				got = append(got, fmt.Sprintf("%v at %v", e["name"], e["ts"]))
			}
		}
		want := `conv "1" forward 2.5+2000 row 1 map[flops:12]; bucket 0 allreduce 1001+1 row 4 <nil>; step 7 at 1`
		if s := strings.Join(got, "; "); s != want {
			t.Errorf("events are\n%s, want\n%s", s, want)
		}
	}
	if !bytes.Contains(raw, []byte(`"left_out":1`)) || !bytes.Contains(raw, []byte(`"name":"wire"`)) {
		t.Errorf("trace is\n%s", raw)
	}
}

func TestMemory(t *testing.T) {
	now, peak := Memory()
	if now.OK != peak.OK {
		t.Fatalf("now %v, peak %v", now, peak)
	}
	if now.OK && (now.X < 1<<20 || peak.X < now.X-(64<<20)) {
		t.Errorf("now %v, peak %v bytes", now, peak)
	}
	if n := testing.AllocsPerRun(20, func() { Memory() }); n > 1 {
		t.Errorf("reading it allocates %g times", n)
	}
}

func TestFLOPs(t *testing.T) {
	f := PlanFLOPs(32*24.6e9, 32)
	if got := f.MFU(Known(100), 4e12); math.Abs(got.X-0.615) > 1e-12 || !got.OK {
		t.Errorf("mfu %v, want 0.615", got)
	}
	for _, v := range []Value{f.MFU(Value{}, 4e12), f.MFU(Known(100), 0), FLOPs{}.MFU(Known(100), 4e12)} {
		if v.OK {
			t.Errorf("mfu is invented: %v", v)
		}
	}
	// 7B of Llama 2 less its embedding, context 4096: 6·6.607e9 + 12·32·32·128·4096
	if p := PaLMFLOPs(6607343616, 32, 32, 128, 4096); math.Abs(p.PerItem/46086512640-1) > 1e-9 {
		t.Errorf("PaLM form gives %.0f", p.PerItem)
	}
	if s := fmt.Sprint(f.Facts(0)); !strings.Contains(s, "plan's kernels") || !strings.Contains(s, "mfu is -") {
		t.Errorf("facts are %s", s)
	}
}

func TestWindow(t *testing.T) {
	var w Window
	if w.Median().OK {
		t.Error("an empty window has a median")
	}
	w.Add(1000) // a slow first step
	for range 9 {
		w.Add(2)
	}
	if got := w.Median(); got != Known(2) {
		t.Errorf("median %v", got)
	}
	for i := range 100 {
		w.Add(float64(i))
	}
	if got := w.Median(); got != Known(67.5) { // 36 … 99
		t.Errorf("median of the last 64 is %v", got)
	}
}

// A tensor survives JSON, with numbers that JSON lacks; one without values stays one without values.
func TestTensorInJSON(t *testing.T) {
	for _, c := range []struct {
		is   Tensor
		want string
	}{
		{Tensor{"confusion", []int{2, 2}, []float64{3, 0.5, math.NaN(), math.Inf(-1)}}, `{"name":"confusion","shape":[2,2],"values":[3,0.5,"NaN","-Inf"]}`},
		{Tensor{"large", []int{1000, 1000}, nil}, `{"name":"large","shape":[1000,1000],"values":null}`},
	} {
		raw, err := json.Marshal(c.is)
		if err != nil || string(raw) != c.want {
			t.Errorf("%s, want %s (%v)", raw, c.want, err)
		}
		var back Tensor
		if err := json.Unmarshal(raw, &back); err != nil || fmt.Sprint(back) != fmt.Sprint(c.is) || (back.Values == nil) != (c.is.Values == nil) {
			t.Errorf("%v came back as %v (%v)", c.is, back, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"values":["x"]}`), new(Tensor)); err == nil {
		t.Error("a value that is no number was read")
	}
}
