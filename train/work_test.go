package train

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
)

// sluggish is a file system that takes long to sync, and to open the weight file for the first time.
type sluggish struct {
	checkpoint.FS
	nap    time.Duration
	opened sync.Once
}

func (s *sluggish) Create(name string) (checkpoint.File, error) {
	f, err := s.FS.Create(name)
	if err != nil || filepath.Base(name) != checkpoint.ModelFile {
		return f, err
	}
	return sluggishFile{f, s.nap}, nil
}

func (s *sluggish) Open(name string) (checkpoint.Source, error) {
	if filepath.Base(name) == checkpoint.ModelFile {
		s.opened.Do(func() { time.Sleep(s.nap) })
	}
	return s.FS.Open(name)
}

type sluggishFile struct {
	checkpoint.File
	nap time.Duration
}

func (f sluggishFile) Sync() error {
	time.Sleep(f.nap)
	return f.File.Sync()
}

// patience is how long a rank may be silent in these tests: ten beats, so that a starved machine does not look like a dead rank.
const patience = 2 * time.Second

// onSluggish runs two ranks of which rank 0 has a slow disk.
func onSluggish(t *testing.T, dir string, nap time.Duration, change func(*Config)) []error {
	t.Helper()
	group, err := shm.NewLocal(2)
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for r, c := range group {
		wg.Go(func() {
			defer c.Close()
			cfg := Config{Model: mlp, Data: noise(t, 64), Batch: 8, Steps: 2, Schedule: ConstantLR(0.1), Optim: optim.Default(optim.SGD, 0), Device: "ref",
				Comm: c, SaveDir: dir, Resume: true, Timeout: patience, LongWork: time.Minute}
			change(&cfg)
			tr, err := New(WithConfig(cfg))
			if err != nil {
				errs[r] = err
				return
			}
			if r == 0 {
				tr.disk = &sluggish{FS: checkpoint.OS{}, nap: nap}
			}
			_, errs[r] = tr.Run(context.Background())
		})
	}
	wg.Wait()
	return errs
}

// TestLongCheckpoint has rank 0 write, and then verify, a checkpoint for longer than a collective waits for a silent rank.
func TestLongCheckpoint(t *testing.T) {
	t.Parallel() // it mostly sleeps
	dir := t.TempDir()
	for _, steps := range []int{2, 3} { // the second run resumes
		if err := errors.Join(onSluggish(t, dir, patience*3/2, func(c *Config) { c.Steps = steps })...); err != nil {
			t.Fatal(err)
		}
	}
	ck, _, err := checkpoint.New(checkpoint.OS{}, dir, 2).Latest(context.Background())
	if err != nil || ck.State.Step != 3 {
		t.Fatalf("%+v: %v", ck, err)
	}
	ck.Close()
}

// TestEndlessCheckpoint has a disk that never returns: the other rank waits for the limit of long work, then names rank 0 and its work.
func TestEndlessCheckpoint(t *testing.T) {
	t.Parallel()
	errs := onSluggish(t, t.TempDir(), 4*patience, func(c *Config) { c.LongWork = 2 * patience }) // the start is long work too
	var late *comm.TimeoutError
	if !errors.As(errs[1], &late) || !slices.Equal(late.Missing, []int{0}) || !strings.Contains(late.Error(), "writing the checkpoint of step 2") {
		t.Errorf("rank 1: %v", errs[1])
	}
}
