package data

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
)

// Batch is one rank's share of a global batch. Its memory belongs to the loader and is reused after Release.
type Batch struct {
	// Fields holds one block of memory per Source.Fields, in that order: always Batch consecutive rows, whatever Valid is.
	Fields [][]byte
	// Valid is the number of rows that count; they come first. In the others every target is Ignore.
	Valid int
	// Indices names the sample in each row; -1 is an empty row.
	Indices []int
	// At is the position at which the batch begins; Next is the position after it, which a checkpoint stores once the batch has been used.
	At, Next State
	// Last marks the last batch of its epoch.
	Last bool
	// Wait is how long the consumer waited for it; Load the time spent loading it, summed over workers.
	Wait, Load time.Duration

	free    chan<- *Batch
	held    *atomic.Int64
	out     atomic.Bool // the consumer has it
	order   Order
	rows    [][][]byte // row → field → memory
	failed  error      // of the lowest row that failed
	failRow int
	mu      sync.Mutex
	pending atomic.Int64  // rows still to load
	load    atomic.Int64  // nanoseconds
	ready   chan struct{} // one token when pending is 0
}

// F32 returns the memory of field i as floats.
func (b *Batch) F32(i int) []float32 { return F32(b.Fields[i]) }

// I32 returns the memory of field i as 32-bit integers.
func (b *Batch) I32(i int) []int32 { return I32(b.Fields[i]) }

// Release returns the memory to the loader. Call it once per batch, when nothing reads the batch any longer.
func (b *Batch) Release() {
	if b.out.CompareAndSwap(true, false) {
		b.held.Add(-1)
		b.free <- b // never blocks: the channel has room for all batches
	}
}

// F32 views bytes as float32 in host order, sharing memory.
func F32(b []byte) []float32 { return view[float32](b) }

// I32 views bytes as int32 in host order, sharing memory.
func I32(b []byte) []int32 { return view[int32](b) }

// I64 views bytes as int64 in host order, sharing memory.
func I64(b []byte) []int64 { return view[int64](b) }

func view[T float32 | int32 | int64](b []byte) []T {
	size := unsafe.Sizeof(T(0))
	if len(b) == 0 {
		return nil
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%size != 0 {
		panic("data: memory is not aligned to its element type")
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))/size)
}

// newBatch allocates the memory of a batch and divides it into rows. alloc may be nil.
func newBatch(fields []Field, size int, alloc func(int64) ([]byte, error), free chan<- *Batch, held *atomic.Int64) (*Batch, error) {
	if alloc == nil {
		alloc = words
	}
	b := &Batch{Indices: make([]int, size), free: free, held: held, ready: make(chan struct{}, 1)}
	b.rows = make([][][]byte, size)
	for _, f := range fields {
		n := f.Bytes()
		mem, err := alloc(int64(n * size))
		if err != nil {
			return nil, fmt.Errorf("data: memory for field %q of a batch of %d: %w", f.Name, size, err)
		}
		b.Fields = append(b.Fields, mem)
		for r := range b.rows {
			b.rows[r] = append(b.rows[r], mem[r*n:(r+1)*n:(r+1)*n])
		}
	}
	return b, nil
}

// Memory is n bytes of ordinary memory in which every element type is aligned, for Source.Load.
func Memory(n int) []byte {
	b, _ := words(int64(n)) // never fails
	return b
}

// words is ordinary memory in which every element type is aligned.
func words(n int64) ([]byte, error) {
	w := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), n), nil
}

// fail keeps the error of the lowest row, so that the reported error does not depend on timing.
func (b *Batch) fail(row int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil || row < b.failRow {
		b.failed, b.failRow = err, row
	}
}

// finish runs when all rows are loaded: it moves rows left empty by a skip after the valid ones and marks all rows that do not count.
func (b *Batch) finish(fields []Field) {
	valid := 0
	for r := range b.Valid {
		if b.Indices[r] < 0 {
			continue
		}
		if r != valid {
			b.Indices[valid], b.Indices[r] = b.Indices[r], -1
			for f := range b.rows[r] {
				copy(b.rows[valid][f], b.rows[r][f])
			}
		}
		valid++
	}
	b.Valid = valid
	for r := valid; r < len(b.rows); r++ {
		for f, field := range fields {
			if b.Indices[r] < 0 {
				clear(b.rows[r][f])
			}
			if field.Target {
				ignore(b.rows[r][f], field)
			}
		}
	}
	b.Load = time.Duration(b.load.Load())
}

func ignore(mem []byte, f Field) {
	if f.DType == npu.F32 {
		clear(mem)
		return
	}
	if f.DType.Size() == 8 {
		for i, v := 0, I64(mem); i < len(v); i++ {
			v[i] = Ignore
		}
		return
	}
	for i, v := 0, I32(mem); i < len(v); i++ {
		v[i] = Ignore
	}
}
