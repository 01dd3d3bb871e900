//go:build cgo && linux

package pmix

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "pmix.h"
import "C"

import (
	"errors"
	"unsafe"
)

// errBuild is the error of a program without this code.
var errBuild = errors.New("this program was built without cgo or not for Linux, so it cannot load " + library)

// native is libpmix.
type native struct{ p *C.gt_pmix }

func load(path string) error {
	n, err := openNative(path)
	if err == nil {
		C.free(unsafe.Pointer(n.p))
	}
	return err
}

func open(path string) (lib, error) { return openNative(path) }

func openNative(path string) (*native, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var why [512]C.char
	p := C.gt_pmix_open(name, &why[0], C.size_t(len(why)))
	if p == nil {
		return nil, errors.New(C.GoString(&why[0]))
	}
	return &native{p}, nil
}

func (n *native) init() int   { return int(C.gt_pmix_init(n.p)) }
func (n *native) commit() int { return int(C.gt_pmix_commit(n.p)) }
func (n *native) fence() int  { return int(C.gt_pmix_fence(n.p)) }

func (n *native) put(key, value string) int {
	k, v := C.CString(key), C.CString(value)
	defer C.free(unsafe.Pointer(k))
	defer C.free(unsafe.Pointer(v))
	return int(C.gt_pmix_put(n.p, k, v))
}

func (n *native) get(rank uint32, key string) (string, int) {
	k := C.CString(key)
	defer C.free(unsafe.Pointer(k))
	var out [8192]C.char
	rc := int(C.gt_pmix_get(n.p, C.uint32_t(rank), k, &out[0], C.size_t(len(out))))
	return C.GoString(&out[0]), rc
}

func (n *native) finalize() int         { return int(C.gt_pmix_finalize(n.p)) }
func (n *native) explain(rc int) string { return C.GoString(C.gt_pmix_explain(n.p, C.int(rc))) }
