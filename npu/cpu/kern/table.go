//go:build cgo && linux && (amd64 || arm64)

package kern

// #include <stdlib.h>
import "C"

import (
	"runtime"
	"sync"
	"unsafe"
	"weak"
)

// table is constant C memory that several Calls share. It is freed after the last of them becomes garbage.
type table struct{ mem unsafe.Pointer }

var tables = struct {
	sync.Mutex
	byKey map[string]weak.Pointer[table]
}{byKey: map[string]weak.Pointer[table]{}}

// sharedTable returns the table of n float32s for the key; fill sets a new one.
func sharedTable(key string, n int, fill func(t []float32)) *table {
	tables.Lock()
	defer tables.Unlock()
	if t := tables.byKey[key].Value(); t != nil {
		return t
	}
	t := &table{mem: C.malloc(C.size_t(4 * max(n, 1)))}
	if n > 0 {
		fill(unsafe.Slice((*float32)(t.mem), n))
	}
	runtime.AddCleanup(t, func(mem unsafe.Pointer) {
		C.free(mem)
		tables.Lock()
		defer tables.Unlock()
		if w, ok := tables.byKey[key]; ok && w.Value() == nil { // not a newer one
			delete(tables.byKey, key)
		}
	}, t.mem)
	tables.byKey[key] = weak.Make(t)
	return t
}
