package npu

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Options configure a device; the zero value suits most programs.
type Options struct {
	Index   int               // which one of several, such as the local rank
	Threads int               // compute threads of the host device; 0 = cores of this process / Share
	Share   int               // how many ranks share this machine; 0 = 1
	CPUs    []int             // processors to bind the threads to; nil = leave it to the system
	Extra   map[string]string // device-specific keys, documented by the device
}

// Opener opens a device of one family.
type Opener func(Options) (Device, error)

var (
	mu      sync.Mutex
	openers = map[string]Opener{}
)

// Register adds a device family; called from init of the device's package.
func Register(family string, open Opener) {
	mu.Lock()
	defer mu.Unlock()
	if _, dup := openers[family]; dup {
		panic("npu: device family registered twice: " + family)
	}
	openers[family] = open
}

// Families lists the registered families in order.
func Families() []string {
	mu.Lock()
	defer mu.Unlock()
	return slices.Sorted(maps.Keys(openers))
}

// OpenError is the error of Open. Its text is that of Err.
type OpenError struct {
	Family string
	Err    error
}

func (e *OpenError) Error() string { return e.Err.Error() }
func (e *OpenError) Unwrap() error { return e.Err }

// ExitCode is the code of a program that ends because a device is not available, as ddp/launch documents it.
func (e *OpenError) ExitCode() int { return 69 }

// Open opens a device of a family ("cpu", "ref", …). Import the device's package for its side effect first. Its error is an *OpenError.
func Open(family string, o Options) (Device, error) {
	mu.Lock()
	open, ok := openers[family]
	mu.Unlock()
	if !ok {
		have := strings.Join(Families(), ", ")
		err := fmt.Errorf("npu: no device family %q in this binary (have %s)\nhint: import its package, or build with cgo for \"cpu\"", family, have)
		return nil, &OpenError{family, err}
	}
	d, err := open(o)
	if err != nil {
		return nil, &OpenError{family, err} // not d: a nil pointer of the device's type would not compare equal to nil
	}
	return d, nil
}
