package telemetry

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kinds reads a file of events: the first letter of each kind with its step, "!" for an invalid line.
func kinds(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	var out []string
	for line := range strings.Lines(string(raw)) {
		var kind string
		var step int
		if i := strings.Index(line, `"step":`); i < 0 {
			kind = "!"
		} else if _, err := fmt.Sscanf(line[i:], `"step":%d`, &step); err != nil {
			kind = "!"
		} else {
			kind = strings.TrimPrefix(line, `{"event":"`)[:1]
		}
		out = append(out, fmt.Sprint(kind, step))
	}
	return strings.Join(out, " ")
}

// A killed run logged steps up to 5 and was cut short in the sixth; its checkpoint is of step 3. A reader of the file finds every step once.
func TestResumedRunTellsOfEveryStepOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "metrics.jsonl")
	j, err := NewJSONL(path)
	must(t, err)
	must(t, j.Emit(RunStart{Recipe: strings.Repeat("long ", 10_000)}))
	for step := range int64(5) {
		must(t, j.Emit(Step{Step: step + 1}))
		if step == 2 {
			must(t, j.Emit(Eval{Step: 3}))
			must(t, j.Emit(Checkpoint{Step: 3}))
		}
	}
	must(t, j.Emit(Eval{Step: 5}))
	_, err = j.f.WriteString(`{"event":"step","time":"2026`)
	must(t, err)
	must(t, j.Close())

	resume := func(step int64) {
		t.Helper()
		j, err := NewJSONL(path)
		must(t, err)
		must(t, j.Emit(RunStart{Step: step}))
		must(t, j.Emit(Step{Step: step + 1}))
		must(t, j.Emit(RunEnd{Step: step + 1}))
		must(t, j.Close())
	}
	resume(3)
	if got, want := kinds(t, path), "r0 s1 s2 s3 e3 c3 r3 s4 r4"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	gone := filepath.Join(dir, "metrics.superseded.jsonl")
	if got, want := kinds(t, gone), "s4 s5 e5 !0"; got != want {
		t.Errorf("what no longer counts: %s, want %s", got, want)
	}
	resume(4) // no step is repeated
	if got, want := kinds(t, path), "r0 s1 s2 s3 e3 c3 r3 s4 r4 r4 s5 r5"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	resume(0) // starts over in
	if got, want := kinds(t, path), "r0 r0 s1 r1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := kinds(t, gone), "s4 s5 e5 !0 s1 s2 s3 e3 c3 r3 s4 r4 r4 s5 r5"; got != want {
		t.Errorf("what no longer counts: %s, want %s", got, want)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// A destination that cannot be written is an error that names the file; the log itself is unchanged.
func TestEventsThatCannotBeMovedStay(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "metrics.jsonl")
	j, err := NewJSONL(path)
	must(t, err)
	must(t, j.Emit(Step{Step: 7}))
	must(t, os.Mkdir(filepath.Join(dir, "metrics.superseded.jsonl"), 0o777))
	if err := j.Emit(RunStart{Step: 3}); err == nil || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	must(t, j.Close())
	if got := kinds(t, path); got != "s7 r3" {
		t.Errorf("%s is left", got)
	}
}
