//go:build cgo && linux

package cann

import "runtime"

// Probe loads a library and returns the symbols that it lacks. Nothing of the library is called, but its constructors run, and it stays loaded: a process
// that only looks is the place for it.
func Probe(file string, symbols []string) (missing []string, err error) {
	h, err := dlopen(file)
	if err != nil {
		return nil, err
	}
	for _, s := range symbols {
		if dlsym(h, s) == nil {
			missing = append(missing, s)
		}
	}
	return missing, nil
}

// CountDevices asks CANN for the number of devices that are visible.
func CountDevices() (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lib, err := Open()
	if err == nil {
		err = lib.Init()
	}
	if err != nil {
		return 0, err
	}
	return lib.DeviceCount()
}
