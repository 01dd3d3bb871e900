package llamafile

import (
	"encoding/binary"
	"runtime"
	"testing"
)

// A 28-byte header that claims very many layers allocates no memory for them.
func TestHeaderAloneTakesNoMemory(t *testing.T) {
	var raw []byte
	for _, v := range []int32{2, 1, 1 << 16, 1, 1, 1, 2} { // dim, hidden, layers, heads, kv heads, vocabulary, context
		raw = binary.LittleEndian.AppendUint32(raw, uint32(v))
	}
	if _, err := parseBin(raw); err != nil {
		t.Fatal(err) // the header is valid
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := fromBin(raw)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 1<<20 {
		t.Errorf("%d KB taken: %v", took>>10, err)
	}
}
