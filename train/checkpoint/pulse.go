package checkpoint

import "sync/atomic"

// Pulse watches the operations of a file system, so that a process that waits for a save or a load can be told whether it progresses: an operation
// that has ended is progress; one under way is up to the system, which may take minutes for a sync. The zero value is ready to use.
type Pulse struct {
	under, ended atomic.Int64
	seen         atomic.Int64 // value of ended when Beats was last called
}

// Beats reports whether an operation is under way or has ended since the last call.
func (p *Pulse) Beats() bool {
	n := p.ended.Load()
	return p.under.Load() > 0 || p.seen.Swap(n) != n
}

// Watch is fs with its operations watched.
func (p *Pulse) Watch(fs FS) FS { return &watched{fs, p} }

// op begins an operation; the returned function ends it.
func (p *Pulse) op() func() {
	p.under.Add(1)
	return func() { p.ended.Add(1); p.under.Add(-1) }
}

type watched struct {
	fs FS
	p  *Pulse
}

func (w *watched) MkdirAll(dir string) error            { defer w.p.op()(); return w.fs.MkdirAll(dir) }
func (w *watched) Rename(from, to string) error         { defer w.p.op()(); return w.fs.Rename(from, to) }
func (w *watched) RemoveAll(name string) error          { defer w.p.op()(); return w.fs.RemoveAll(name) }
func (w *watched) ReadDir(dir string) ([]string, error) { defer w.p.op()(); return w.fs.ReadDir(dir) }
func (w *watched) SyncDir(dir string) error             { defer w.p.op()(); return w.fs.SyncDir(dir) }
func (w *watched) Free(dir string) (int64, error)       { defer w.p.op()(); return w.fs.Free(dir) }

func (w *watched) Create(name string) (File, error) {
	defer w.p.op()()
	f, err := w.fs.Create(name)
	if err != nil {
		return nil, err
	}
	return &watchedFile{f, w.p}, nil
}

func (w *watched) Open(name string) (Source, error) {
	defer w.p.op()()
	s, err := w.fs.Open(name)
	if err != nil {
		return nil, err
	}
	return &watchedSource{s, w.p}, nil
}

type watchedFile struct {
	f File
	p *Pulse
}

func (w *watchedFile) Write(b []byte) (int, error) { defer w.p.op()(); return w.f.Write(b) }
func (w *watchedFile) Sync() error                 { defer w.p.op()(); return w.f.Sync() }
func (w *watchedFile) Close() error                { defer w.p.op()(); return w.f.Close() }

type watchedSource struct {
	Source
	p *Pulse
}

func (w *watchedSource) ReadAt(b []byte, off int64) (int, error) {
	defer w.p.op()()
	return w.Source.ReadAt(b, off)
}
