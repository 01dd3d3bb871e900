package shm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"golang.org/x/sys/unix"
)

// create creates the file of a job, named in a folder of this user. over removes the name when rank 0 is done: either with an error, which is reported to
// ranks that arrive later, or without.
func create(cfg Config) (f files, over func(err error), err error) {
	// Another rank 0 that is done, or a Sweep, may remove the empty folder at any moment: a try takes microseconds, and one suffices as a rule.
	untold := others(cfg.Size, -1)
	for range 10_000 {
		var d *folder
		if d, err = ownFolder(cfg.Dir); err == nil {
			over = func(err error) { d.over(cfg, err) }
			if f, err = d.create(cfg); err == nil {
				return f, over, nil
			}
			if isNoSpace(err) {
				var lost error
				// Only those that were not told: a rank that was has read its refusal and left, perhaps with the folder, and would not read another.
				if untold, lost = d.refuse(cfg.Job, untold, err); errors.Is(lost, unix.ENOENT) {
					err = lost // a concurrent Sweep removed the folder: try again in a new one
				}
			}
			d.tidy()
			d.close()
		}
		if !errors.Is(err, unix.ENOENT) {
			break
		}
	}
	return files{}, nil, err
}

// over removes the name of the file. Ranks that have it open learn of err through it, the others find a refusal.
func (d *folder) over(cfg Config, err error) {
	if err != nil {
		fd, failed := d.open(cfg.Job)
		d.refuse(cfg.Job, others(cfg.Size, fd), err) // before the removal: a concurrent Sweep removes an empty folder
		if failed == nil {
			closeFD(fd)
		}
	}
	d.remove(cfg.Job)
	d.tidy()
	d.close()
}

// others returns the ranks except 0 that never opened a file; without a file, all of them.
func others(size, fd int) (ranks []int) {
	var blocks []*block
	if m, err := mapPart(fd, layoutOf(size).slots); err == nil {
		defer m.unmap()
		blocks = viewOf(m.mem, size).block
	}
	for r := 1; r < size; r++ {
		if blocks == nil || atomic.LoadUint32(&blocks[r].state) == absent && !held(fd, r, 1) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// create creates the file of a job. It gets its name only once it is complete and locked by rank 0, so that a rank that finds the name can
// rely on both; a file that rank 0 does not lock is a leftover.
func (d *folder) create(cfg Config) (files, error) {
	fd, err := unix.Openat(d.fd, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return files{}, fmt.Errorf("creating a file in %s: %w\nhint: %s must be a tmpfs writable by this user", d.path, err, filepath.Dir(d.path))
	}
	f := files{control: fd, heap: fd}
	if heap, err := anonymous(); err == nil {
		f.heap = heap
	}
	if err = lock(fd, 0); err == nil {
		err = initialise(f, cfg.Size)
	}
	if err == nil {
		d.withdraw(cfg.Job, cfg.Size)
		err = d.name(fd, cfg.Job)
	}
	if err != nil {
		f.close()
		return files{}, err
	}
	return f, nil
}

// namePatience is how long to wait for a sweep, which takes microseconds.
const namePatience = time.Second

// name links the file into the folder and replaces a leftover.
func (d *folder) name(fd int, job string) error {
	if unlock, ok := d.lock(namePatience); ok {
		defer unlock()
	}
	for range 3 {
		err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), d.fd, job, unix.AT_SYMLINK_FOLLOW)
		if !errors.Is(err, unix.EEXIST) {
			return err
		}
		if pid, alive := d.owner(job); alive {
			return fmt.Errorf("a job of this name is starting (pid %d holds %s/%s)\nhint: give each job its own id", pid, d.path, job)
		}
		d.remove(job)
	}
	return fmt.Errorf("%s/%s reappears each time it is removed", d.path, job)
}

// owner reports whether the rank 0 that created a file is alive.
func (d *folder) owner(job string) (pid uint32, alive bool) {
	fd, err := d.open(job)
	if err != nil {
		return 0, false // not created by a rank 0
	}
	defer closeFD(fd)
	if !held(fd, 0, 1) {
		return 0, false
	}
	l := layoutOf(1)
	if m, err := mapPart(fd, l.slots); err == nil {
		pid = viewOf(m.mem, 1).block[0].pid
		m.unmap()
	}
	return pid, true
}

// attach opens the file of rank 0 and acquires this rank's lock.
func attach(ctx context.Context, cfg Config, begin time.Time) (files, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		fd, err := tryAttach(cfg)
		if err != nil {
			return files{}, err
		}
		if fd >= 0 {
			return files{control: fd, heap: openHeap(fd)}, nil
		}
		cfg.late(begin, func() []int { return []int{0} })
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if ctx.Err() == context.Canceled {
				return files{}, context.Cause(ctx)
			}
			return files{}, &comm.TimeoutError{Call: "join", After: time.Since(begin), Missing: []int{0}}
		}
	}
}

// tryAttach looks for rank 0 in all folders of this user. It returns -1 and no error if rank 0 is not there yet.
func tryAttach(cfg Config) (int, error) {
	list, err := folders(cfg.Dir)
	defer func() {
		for _, d := range list {
			d.close()
		}
	}()
	if err != nil {
		return -1, err
	}
	for _, d := range list {
		if fd, err := d.attach(cfg); fd >= 0 || err != nil {
			return fd, err
		}
		if reason, ok := d.refused(cfg.Job, cfg.Rank); ok {
			return -1, &comm.PeerError{Rank: 0, Call: "join", Reason: reason}
		}
	}
	return -1, nil
}

// attach returns -1 and no error if there is no rank 0 in the folder.
func (d *folder) attach(cfg Config) (int, error) {
	fd, err := d.open(cfg.Job)
	if errors.Is(err, unix.ENOENT) {
		return -1, nil
	}
	if err != nil {
		return -1, fmt.Errorf("opening %s/%s: %w", d.path, cfg.Job, err)
	}
	if !held(fd, 0, 1) { // left by a dead job: our rank 0 will replace it
		closeFD(fd)
		return -1, nil
	}
	if err := matches(fd, cfg.Size); err != nil {
		closeFD(fd)
		return -1, fmt.Errorf("%s/%s: %w", d.path, cfg.Job, err)
	}
	if err := lock(fd, cfg.Rank); err != nil {
		closeFD(fd)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			err = fmt.Errorf("there is another rank %d\nhint: give each process its own rank, and each job its own id", cfg.Rank)
		}
		return -1, err
	}
	return fd, nil
}

// foreign is the error for a file that was not created by a rank 0.
func foreign(why string) error {
	return fmt.Errorf("the file is not one of gotrain's (%s)\nhint: remove it, or give the job another id", why)
}

// mapPart maps the first n bytes of a file from another process. It refuses a shorter file, because touching pages beyond its end raises SIGBUS.
func mapPart(fd int, n int64) (mapping, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return mapping{}, err
	}
	if st.Size < n {
		return mapping{}, foreign(fmt.Sprintf("%d bytes, want at least %d", st.Size, n))
	}
	return mapRange(fd, 0, n)
}

// matches compares the header with what this rank expects.
func matches(fd, size int) error {
	m, err := mapPart(fd, pageBytes)
	if err != nil {
		return err
	}
	h := viewOf(m.mem, 0).hdr
	switch {
	case atomic.LoadUint64(&h.magic) != magic:
		err = foreign("wrong magic number")
	case h.version != version:
		err = fmt.Errorf("rank 0 runs another version of gotrain (protocol %d, this is %d)", h.version, version)
	case h.size != uint32(size):
		err = fmt.Errorf("rank 0 expects %d ranks, this rank %d\nhint: start all ranks with the same world size", h.size, size)
	}
	m.unmap()
	if err != nil {
		return err
	}
	if m, err = mapPart(fd, layoutOf(size).rings); err == nil { // rank 0 sets the size before the name
		m.unmap()
	}
	return err
}

// openHeap opens the anonymous heap through the process of rank 0. It returns -1 if that is not possible (other container, hardened /proc); then
// all ranks use the control file for the heap. If there is no anonymous heap it returns fd.
func openHeap(fd int) int {
	m, err := mapPart(fd, pageBytes)
	if err != nil {
		return -1
	}
	defer m.unmap()
	h := viewOf(m.mem, 0).hdr
	if h.heapPid == 0 {
		return fd
	}
	// In another namespace the pid may be that of any process, and the descriptor any file: open nothing but a regular file.
	path, err := unix.Open(fmt.Sprintf("/proc/%d/fd/%d", h.heapPid, h.heapFD), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	defer closeFD(path)
	var st unix.Stat_t
	if unix.Fstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return -1
	}
	heap, err := reopen(path)
	if err != nil {
		return -1
	}
	var b [8]byte
	if n, err := unix.Pread(heap, b[:], 0); err != nil || n != len(b) || binary.NativeEndian.Uint64(b[:]) != h.nonce {
		closeFD(heap) // a process with the same pid in another namespace
		return -1
	}
	return heap
}
