//go:build cgo && linux

package cann

import (
	"sync/atomic"
	"unsafe"
)

// Set sets or clears the flag; from any thread.
func (f *Flag) Set(on bool) {
	v := uint32(0)
	if on {
		v = 1
	}
	atomic.StoreUint32((*uint32)(unsafe.Pointer(f.c)), v)
}

// Get reports whether it is set.
func (f *Flag) Get() bool { return atomic.LoadUint32((*uint32)(unsafe.Pointer(f.c))) != 0 }
