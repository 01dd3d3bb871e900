package checkpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/faultfs"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

func names(t testing.TB, s *checkpoint.Store) string {
	t.Helper()
	infos, err := s.List(ctx)
	must(t, err)
	var out []string
	for _, in := range infos {
		n := strings.TrimPrefix(in.Name, "step-0000000")
		if in.Err != nil {
			n += "!"
		}
		out = append(out, n)
	}
	return strings.Join(out, " ")
}

func TestRotation(t *testing.T) {
	fs := faultfs.New()
	s := save(t, fs, 1, 2, 3, 4)
	if got := names(t, s); got != "4 3" {
		t.Errorf("kept %s, want 4 3", got)
	}
	all := checkpoint.New(fs, root, 0)
	for n := range int64(3) {
		_, err := all.Save(ctx, content(5+n, "x"))
		must(t, err)
	}
	if got := names(t, s); got != "7 6 5 4 3" {
		t.Errorf("kept %s, want 7 6 5 4 3", got)
	}
	if one := checkpoint.New(faultfs.New(), root, 1); true {
		for n := range int64(3) {
			_, err := one.Save(ctx, content(n, "x"))
			must(t, err)
		}
		if got := names(t, one); got != "2 1" {
			t.Errorf("keep 1 kept %s, want 2 1", got)
		}
	}
}

func corrupt(t testing.TB, fs *faultfs.FS, step int) {
	t.Helper()
	must(t, fs.Corrupt(fmt.Sprintf("%s/step-%08d/%s", root, step, checkpoint.ModelFile), func(b []byte) []byte { b[len(b)-1] ^= 1; return b }))
}

// A checkpoint found damaged must not rotate a good one out.
func TestDamagedOneDoesNotCount(t *testing.T) {
	fs := faultfs.New()
	save(t, fs, 1, 2)
	corrupt(t, fs, 2)
	s := checkpoint.New(fs, root, 2)
	c, r, err := s.Latest(ctx)
	must(t, err)
	check(t, c, 1, "run1")
	want := "checkpoint step-00000002 cannot be used: checkpoint: /runs/x/checkpoints/step-00000002: damaged: the contents of " +
		"model.safetensors are not those that were saved"
	if got := r.String(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\nfalling back to checkpoint step-00000001") {
		t.Errorf("report is\n%s", got)
	}
	_, err = s.Save(ctx, content(2, "again"))
	must(t, err)
	if got := names(t, s); got != "2-2 1" { // the damaged 2 goes, the good 1 stays
		t.Errorf("kept %s, want 2-2 1", got)
	}
	c, _, err = s.Latest(ctx)
	must(t, err)
	check(t, c, 2, "again")
}

// A run that goes back to an earlier step is not thrown forward to the abandoned branch.
func TestNewestIsTheLastCommitted(t *testing.T) {
	fs := faultfs.New()
	save(t, fs, 5, 8)
	s := save(t, fs, 6)
	c, _, err := s.Latest(ctx)
	must(t, err)
	check(t, c, 6, "run6")
	if got := names(t, s); got != "6 8" {
		t.Errorf("kept %s, want 6 8", got)
	}
}

func TestAllDamagedIsNoNewRun(t *testing.T) {
	fs := faultfs.New()
	s := save(t, fs, 1, 2)
	corrupt(t, fs, 1)
	corrupt(t, fs, 2)
	_, _, err := s.Latest(ctx)
	if err == nil || errors.Is(err, checkpoint.ErrNone) || !strings.Contains(err.Error(), "none of the 2") || !strings.Contains(err.Error(), "hint:") {
		t.Errorf("error %v", err)
	}
}

// Open trusts the tensors, whose checksums another rank has verified, and nothing else.
func TestOpenReadsNoTensors(t *testing.T) {
	fs := faultfs.New()
	s := save(t, fs, 1, 2)
	flip := func(b []byte) []byte { b = append([]byte{}, b...); b[len(b)-3] ^= 1; return b }
	must(t, fs.Corrupt(root+"/step-00000001/"+checkpoint.ModelFile, flip))
	if _, err := s.Load(ctx, "step-00000001"); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Errorf("Load: %v", err)
	}
	ck, err := checkpoint.New(fs, root, 2).Open(ctx, "step-00000001")
	if err != nil || ck.State.Step != 1 || ck.File(checkpoint.ModelFile) == nil {
		t.Fatal(err)
	}
	must(t, ck.Close())
	must(t, fs.Corrupt(root+"/step-00000002/"+checkpoint.StateFile, flip))
	if _, err := s.Open(ctx, "step-00000002"); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Errorf("a changed state: %v", err)
	}
}

func TestNewerFormatIsLeftAlone(t *testing.T) {
	fs := faultfs.New()
	s := save(t, fs, 1, 2)
	must(t, fs.Corrupt(root+"/step-00000001/MANIFEST.json", func(b []byte) []byte {
		return []byte(strings.Replace(string(b), `"format": 1`, `"format": 9`, 1))
	}))
	_, err := s.Load(ctx, "step-00000001")
	if err == nil || !strings.Contains(err.Error(), "format 9 is newer") || !strings.Contains(err.Error(), "hint: use the version") {
		t.Errorf("error %v", err)
	}
	save(t, fs, 3, 4)
	if got := names(t, s); got != "4 3 1!" {
		t.Errorf("kept %s, want 4 3 1!", got)
	}
}

func TestLoadNamesWhatThereIs(t *testing.T) {
	s := save(t, faultfs.New(), 1, 2)
	_, err := s.Load(ctx, "step-00000007")
	if err == nil || !strings.Contains(err.Error(), "there is no /runs/x/checkpoints/step-00000007") ||
		!strings.Contains(err.Error(), "there are step-00000002, step-00000001") {
		t.Errorf("error %v", err)
	}
	for _, bad := range []string{"../x", "latest", "step-1", ""} {
		if _, err := s.Load(ctx, bad); err == nil {
			t.Errorf("%q is loaded", bad)
		}
	}
}

func TestCancelledSave(t *testing.T) {
	fs := faultfs.New()
	s := save(t, fs, 1)
	stop, cancel := context.WithCancel(ctx)
	c := content(2, "x")
	c.Files[1].Data = func(t safetensors.Tensor, w io.Writer) error {
		cancel()
		_, err := w.Write(make([]byte, t.Bytes()))
		return err
	}
	if _, err := s.Save(stop, c); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, _, err := s.Latest(stop); !errors.Is(err, context.Canceled) {
		t.Errorf("latest: error %v", err)
	}
	got, r, err := s.Latest(ctx)
	must(t, err)
	check(t, got, 1, "run1")
	if r.FellBack() {
		t.Errorf("cancelling counted as damage: %v", r)
	}
}

func TestFaultsOfTheCaller(t *testing.T) {
	s := save(t, faultfs.New(), 1)
	for want, change := range map[string]func(*checkpoint.Content){
		"not a plain file name": func(c *checkpoint.Content) { c.Files[0].Name = "../x.safetensors" },
		"twice":                 func(c *checkpoint.Content) { c.Files[1].Name = c.Files[0].Name },
		"not be negative":       func(c *checkpoint.Content) { c.State.Step = -1 },
		"20 of its 20 bytes": func(c *checkpoint.Content) {
			c.Files[0].Data = func(safetensors.Tensor, io.Writer) error { return nil }
		},
	} {
		c := content(2, "x")
		change(&c)
		if _, err := s.Save(ctx, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if got := names(t, s); got != "1" {
		t.Errorf("there is %s, want 1", got)
	}
}

func TestStateRoundTrip(t *testing.T) {
	s := checkpoint.New(faultfs.New(), root, 2)
	c := content(7, "r")
	c.State.Epoch, c.State.Samples, c.State.OptimizerSteps, c.State.World = 2, 99, 6, 4
	c.State.Sampler = json.RawMessage(`{"epoch":2,"consumed":35}`)
	c.State.RNG = map[string]string{"dropout": "17"}
	c.State.Scaler = optim.ScalerState{Scale: 1 << 15, Good: 12, Skipped: 1}
	c.State.Metrics = map[string]float64{"top1": 0.5, "loss": math.NaN()}
	_, err := s.Save(ctx, c)
	must(t, err)
	got, _, err := s.Latest(ctx)
	must(t, err)
	st := got.State
	if st.Epoch != 2 || st.Samples != 99 || st.OptimizerSteps != 6 || st.World != 4 || st.RNG["dropout"] != "17" || st.Scaler != c.State.Scaler ||
		st.Format != checkpoint.Format ||
		st.Time.IsZero() {
		t.Errorf("state is %+v", st)
	}
	if v, ok := st.Metrics["loss"]; ok || st.Metrics["top1"] != 0.5 {
		t.Errorf("metrics are %v (%v)", st.Metrics, v)
	}
	var place struct{ Epoch, Consumed int }
	must(t, json.Unmarshal(st.Sampler, &place))
	if place.Epoch != 2 || place.Consumed != 35 {
		t.Errorf("place is %s", st.Sampler)
	}
}

// The real file system: save, rotate, find the pointer, load.
func TestOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := checkpoint.New(checkpoint.OS{}, dir, 2)
	if _, _, err := s.Latest(ctx); !errors.Is(err, checkpoint.ErrNone) {
		t.Errorf("an absent directory gives %v", err)
	}
	must(t, os.MkdirAll(filepath.Join(dir, "step-00000099.tmp", "x"), 0o777))
	must(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o666))
	for n := range int64(3) {
		saved, err := s.Save(ctx, content(n+1, fmt.Sprint("run", n+1)))
		must(t, err)
		must(t, saved.Warning)
		if saved.Bytes == 0 || saved.Took <= 0 {
			t.Errorf("saved %+v", saved)
		}
	}
	got, err := os.ReadDir(dir)
	must(t, err)
	var found []string
	for _, e := range got {
		found = append(found, e.Name())
	}
	if want := "latest notes.txt step-00000002 step-00000003"; strings.Join(found, " ") != want {
		t.Errorf("directory has %v, want %s", found, want)
	}
	pointer, err := os.ReadFile(filepath.Join(dir, "latest"))
	must(t, err)
	if string(pointer) != "step-00000003\n" {
		t.Errorf("latest says %q", pointer)
	}
	c, _, err := s.Latest(ctx)
	must(t, err)
	check(t, c, 3, "run3")
	must(t, c.Close())
}

// A process that saves without pause is killed again and again; every checkpoint that it reported as saved is there.
func TestKilledProcess(t *testing.T) {
	if dir := os.Getenv("CHECKPOINT_TEST_DIR"); dir != "" {
		s := checkpoint.New(checkpoint.OS{}, dir, 2)
		for n := int64(1); ; n++ {
			if _, err := s.Save(ctx, content(n, fmt.Sprint("run", n))); err != nil {
				panic(err)
			}
			fmt.Println(n)
		}
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	for i := range 6 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledProcess$")
		cmd.Env = append(os.Environ(), "CHECKPOINT_TEST_DIR="+dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		said := int64(0)
		fmt.Fscan(out, &said)
		time.AfterFunc(time.Duration(5+7*i)*time.Millisecond, func() { cmd.Process.Signal(syscall.SIGKILL) })
		for {
			if _, err := fmt.Fscan(out, &said); err != nil {
				break
			}
		}
		cmd.Wait()
		c, _, err := checkpoint.New(checkpoint.OS{}, dir, 2).Latest(ctx)
		must(t, err)
		if c.Step < said {
			t.Errorf("step %d was said to be saved, %d is found", said, c.Step)
		}
		check(t, c, c.Step, fmt.Sprint("run", c.Step))
		c.Close()
	}
}
