package images

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/gotrain/gotrain/train/foreign"
)

// allocated says how many bytes do takes from the heap, freed ones included.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A few hundred kilobytes of gzip that stand for gigabytes of zeros are refused before the memory is taken.
func TestIDXBomb(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	head := []byte{0, 0, 8, 3}
	for _, d := range []uint32{4000, 1000, 1000} {
		head = binary.BigEndian.AppendUint32(head, d)
	}
	z.Write(head)
	zeros := make([]byte, 1<<20)
	for range 100 {
		z.Write(zeros)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	took := allocated(func() { _, err = ReadIDX(&b) })
	if !errors.Is(err, foreign.ErrBomb) || took > 300<<20 {
		t.Errorf("%d MB taken: %v", took>>20, err)
	}
	// A header alone takes nothing.
	took = allocated(func() { _, err = ReadIDX(bytes.NewReader(head)) })
	if err == nil || took > 1<<20 {
		t.Errorf("%d KB taken: %v", took>>10, err)
	}
}
