package shm

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const crossProcess = true

// anonymous creates an unnamed file.
func anonymous() (fd int, err error) {
	return unix.MemfdCreate("gotrain", unix.MFD_CLOEXEC)
}

// reopen returns another open file description of the same file, because locks belong to descriptions.
func reopen(fd int) (int, error) {
	return unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR|unix.O_CLOEXEC, 0)
}

// reserve allocates memory for a range of the file, so that touching it cannot raise SIGBUS later.
func reserve(fd int, off, n int64) error {
	for {
		if err := unix.Fallocate(fd, 0, off, n); err != unix.EINTR {
			return err
		}
	}
}

// release frees the memory of a range, even if it is mapped.
func release(fd int, off, n int64) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}

// mapping is a mapped range of the file.
type mapping struct {
	mem   []byte
	whole unsafe.Pointer // reserved address space, contains mem
	bytes uintptr
}

// mapRange maps a range of the file. Ranges of 2 MiB and more are mapped at a multiple of 2 MiB, as huge pages need.
func mapRange(fd int, off, n int64) (mapping, error) {
	room := uintptr(n)
	if n >= hugeBytes {
		room += hugeBytes
	}
	p, err := unix.MmapPtr(-1, 0, nil, room, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return mapping{}, fmt.Errorf("mmap of %d bytes: %w", n, err)
	}
	at := p
	if n >= hugeBytes {
		at = unsafe.Add(p, (hugeBytes-uintptr(p)%hugeBytes)%hugeBytes)
	}
	if _, err := unix.MmapPtr(fd, off, at, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
		unix.MunmapPtr(p, room)
		return mapping{}, fmt.Errorf("mmap of %d bytes: %w", n, err)
	}
	return mapping{mem: unsafe.Slice((*byte)(at), n), whole: p, bytes: room}, nil
}

func (m *mapping) unmap() {
	if m.whole != nil {
		unix.MunmapPtr(m.whole, m.bytes)
		*m = mapping{}
	}
}

// warm populates the page table, so that the first step does not pay for it, with huge pages if the system grants them on request.
// (Forcing them with MADV_COLLAPSE costs a millisecond per megabyte and showed no gain.) Errors do not matter.
func (m *mapping) warm() {
	if len(m.mem) >= hugeBytes {
		unix.Madvise(m.mem, unix.MADV_HUGEPAGE)
	}
	if len(m.mem) > 0 {
		unix.Madvise(m.mem, unix.MADV_POPULATE_WRITE)
	}
}

// lock locks byte number rank of the file. The kernel releases it when the last descriptor of the description is closed, at the latest when
// the process dies. That is how peers detect a death.
func lock(fd, rank int) error {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(rank), Len: 1}
	return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &l)
}

// held reports whether another description locks any of the n bytes starting at rank.
func held(fd, rank, n int) bool {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(rank), Len: int64(n)}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l); err != nil {
		return true // unknown: assume alive
	}
	return l.Type != unix.F_UNLCK
}

const (
	futexWaitOp = 0 // FUTEX_WAIT and FUTEX_WAKE without FUTEX_PRIVATE_FLAG: the word is shared between processes
	futexWakeOp = 1
)

// sleepOn blocks while *word == val, for at most d. It reports whether d passed without a wake-up.
func sleepOn(word *uint32, val uint32, d time.Duration) (timeout bool) {
	ts := unix.NsecToTimespec(int64(d))
	_, _, err := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitOp, uintptr(val), uintptr(unsafe.Pointer(&ts)), 0, 0)
	return err == unix.ETIMEDOUT
}

// wakeAll wakes all sleepers on word.
func wakeAll(word *uint32) {
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWakeOp, 1<<30, 0, 0, 0)
}

// yield lets another ready thread run on this processor.
func yield() { unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// processors returns the set of processors that this process may run on.
func processors() (set [16]uint64) {
	var s unix.CPUSet
	if unix.SchedGetaffinity(0, &s) != nil {
		return set
	}
	for i := range set {
		set[i] = uint64(s[i])
	}
	return set
}

// closeFD closes a descriptor.
func closeFD(fd int) { unix.Close(fd) }

func isNoSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM) }

// room returns free and total space of the file system; 0 if unknown.
func room(fd int) (free, total int64) {
	var s unix.Statfs_t
	if unix.Fstatfs(fd, &s) != nil {
		return 0, 0
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize
}
