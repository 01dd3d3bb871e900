//go:build cgo && linux

package fakectl

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>

static bool call_set(void *f, const char *name, const char *value) { return ((bool (*)(const char *, const char *))f)(name, value); }
static size_t call_stats(void *f, char *to, size_t n) { return ((size_t (*)(char *, size_t))f)(to, n); }
static void call_zero(void *f) { ((void (*)(void))f)(); }
*/
import "C"

import (
	"fmt"
	"path/filepath"
	"unsafe"

	"github.com/gotrain/gotrain/npu/acl/fakecann"
)

// Fake is a fake CANN in this process.
type Fake struct{ set, stats, zero unsafe.Pointer }

// Open loads the fake in a folder, if it is not loaded.
func Open(dir string) (*Fake, error) {
	path := C.CString(filepath.Join(dir, "lib64", "libfakecann.so"))
	defer C.free(unsafe.Pointer(path))
	lib := C.dlopen(path, C.RTLD_NOW)
	if lib == nil {
		return nil, fmt.Errorf("fakectl: %s", C.GoString(C.dlerror()))
	}
	f := new(Fake)
	for name, to := range map[string]*unsafe.Pointer{"fakeSet": &f.set, "fakeStats": &f.stats, "fakeZero": &f.zero} {
		c := C.CString(name)
		*to = C.dlsym(lib, c)
		C.free(unsafe.Pointer(c))
		if *to == nil {
			return nil, fmt.Errorf("fakectl: %s is not in %s", name, dir)
		}
	}
	return f, nil
}

// Set changes a switch.
func (f *Fake) Set(name, value string) error {
	n, v := C.CString(name), C.CString(value)
	defer C.free(unsafe.Pointer(n))
	defer C.free(unsafe.Pointer(v))
	if !C.call_set(f.set, n, v) {
		return fmt.Errorf("fakectl: %s=%s was not understood", name, value)
	}
	return nil
}

// Stats returns the statistics.
func (f *Fake) Stats() (*fakecann.Stats, error) {
	for n := C.size_t(1 << 14); ; {
		p := (*C.char)(C.malloc(n))
		got := C.call_stats(f.stats, p, n)
		text := C.GoBytes(unsafe.Pointer(p), C.int(min(got, n-1)))
		C.free(unsafe.Pointer(p))
		if got < n {
			return fakecann.ParseStats(text)
		}
		n = got + 1<<12
	}
}

// Zero sets the counters of calls, tasks, violations and injections to zero; what is alive stays counted.
func (f *Fake) Zero() { C.call_zero(f.zero) }
