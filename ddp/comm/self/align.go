package self

import "unsafe"

// padding is how many bytes of b to skip so that the rest begins on a multiple of a.
func padding(b []byte, a uintptr) uintptr {
	return -uintptr(unsafe.Pointer(&b[0])) & (a - 1)
}
