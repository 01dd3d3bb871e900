//go:build !linux

package shm

import (
	"os"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// Other systems than Linux have no futex and no lock that reveals a death, so only groups within one process exist (NewLocal): for tests,
// planning and simulation. The "file" is Go memory that all ranks of the process see.

const crossProcess = false

var memory struct {
	sync.Mutex
	next  int
	table map[int]*file
}

type file struct {
	refs  int
	parts map[int64][]uint64 // by offset: memory of a range
}

func anonymous() (int, error) {
	memory.Lock()
	defer memory.Unlock()
	if memory.table == nil {
		memory.table = map[int]*file{}
	}
	memory.next++
	memory.table[memory.next] = &file{refs: 1, parts: map[int64][]uint64{}}
	return memory.next, nil
}

func reopen(fd int) (int, error) {
	memory.Lock()
	defer memory.Unlock()
	memory.next++
	f := memory.table[fd]
	f.refs++
	memory.table[memory.next] = f
	return memory.next, nil
}

func reserve(int, int64, int64) error { return nil }
func release(int, int64, int64) error { return nil }

type mapping struct {
	mem []byte
}

func mapRange(fd int, off, n int64) (mapping, error) {
	memory.Lock()
	defer memory.Unlock()
	f := memory.table[fd]
	if f == nil {
		return mapping{}, os.ErrClosed
	}
	w := f.parts[off]
	if w == nil {
		w = make([]uint64, (n+hugeBytes)/8)
		f.parts[off] = w
	}
	p := unsafe.Pointer(&w[0])
	p = unsafe.Add(p, (64-uintptr(p)%64)%64)
	return mapping{mem: unsafe.Slice((*byte)(p), n)}, nil
}

func (m *mapping) unmap() { *m = mapping{} }
func (m *mapping) warm()  {}

func lock(int, int) error     { return nil }
func held(int, int, int) bool { return true }
func closeFD(fd int) {
	memory.Lock()
	defer memory.Unlock()
	delete(memory.table, fd)
}

func sleepOn(_ *uint32, _ uint32, d time.Duration) bool {
	time.Sleep(min(d, 50*time.Microsecond))
	return false
}
func wakeAll(*uint32) {}

func processors() (set [16]uint64) {
	for i := range min(runtime.NumCPU(), 1024) {
		set[i/64] |= 1 << (i % 64)
	}
	return set
}

func isNoSpace(error) bool    { return false }
func room(int) (int64, int64) { return 0, 0 }

func yield() { runtime.Gosched() }
