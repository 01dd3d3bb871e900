package npu

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Options configure a device; the zero value suits most programs.
type Options struct {
	Index   int               // which of several devices, such as the local rank
	Threads int               // compute threads of the host device; 0 = cores of this process / Share
	Share   int               // number of ranks on this machine; 0 = 1
	CPUs    []int             // processors to bind the threads to; nil = any
	Compute DType             // type of activations that will be wanted, for a device that has some only on request; Invalid = not known yet
	Extra   map[string]string // device-specific keys, documented by the device
}

// Opener opens a device of one family.
type Opener func(Options) (Device, error)

// family is a registered device family.
type family struct {
	open     Opener
	priority int
}

var (
	mu       sync.Mutex
	families = map[string]family{}
	counters = map[string]Counter{}
	places   = map[string]Locator{}
)

// Register adds a device family; called from init of the device's package. OpenBest tries families in order of decreasing priority,
// so a faster device has a higher one. In this module: 0 for plain Go, 10 for the host's kernels.
func Register(name string, priority int, open Opener) {
	mu.Lock()
	defer mu.Unlock()
	if _, dup := families[name]; dup {
		panic("npu: device family registered twice: " + name)
	}
	families[name] = family{open, priority}
}

// Families lists the registered families in alphabetical order.
func Families() []string {
	mu.Lock()
	defer mu.Unlock()
	return slices.Sorted(maps.Keys(families))
}

// OpenError is the error of Open. Its text is that of Err.
type OpenError struct {
	Family string
	Err    error
}

func (e *OpenError) Error() string { return e.Err.Error() }
func (e *OpenError) Unwrap() error { return e.Err }

// ExitCode is the code of a program that ends because a device is not available, or because an option of it is wrong, as ddp/launch documents them.
func (e *OpenError) ExitCode() int {
	var wrong *OptionError
	if errors.As(e.Err, &wrong) {
		return 78
	}
	return 69
}

// OptionError is wrapped by the error of an Opener for which Options.Extra, or a variable of the environment, is wrong: the mistake is in what was asked for,
// not in the machine. OpenBest then opens no other device, unless the family does not know the option at all, which may be meant for another one.
type OptionError struct {
	Err     error
	Unknown bool // the family has no option of the name
}

func (e *OptionError) Error() string { return e.Err.Error() }
func (e *OptionError) Unwrap() error { return e.Err }

// Open opens a device of a family ("cpu", "ref", …). Import the device's package for its side effect first. Its error is an *OpenError.
func Open(family string, o Options) (Device, error) {
	mu.Lock()
	f, ok := families[family]
	mu.Unlock()
	if !ok {
		have := strings.Join(Families(), ", ")
		err := fmt.Errorf("npu: device family %q is not in this binary (available: %s)\nhint: import its package, or build with cgo for \"cpu\"", family, have)
		return nil, &OpenError{family, err}
	}
	d, err := f.open(o)
	if err != nil {
		return nil, &OpenError{family, err} // not d: a nil pointer of the device's type would not compare equal to nil
	}
	return d, nil
}

// byPriority lists the registered families, the best first.
func byPriority() []string {
	names := Families()
	mu.Lock()
	defer mu.Unlock()
	slices.SortStableFunc(names, func(a, b string) int { return families[b].priority - families[a].priority })
	return names
}

// OpenBest opens the family of highest priority that can be opened. passed says why better ones could not be opened, or is nil if the best
// one that this machine has was: callers must report it, because the opened device may be a hundred times slower. A mistake in what was asked for
// (OptionError) is an error and no reason for a slower device.
func OpenBest(o Options) (dev Device, passed, err error) {
	var absent error
	for _, name := range byPriority() {
		if dev, err = Open(name, o); err == nil {
			return dev, passed, nil
		}
		if wrong, ok := errors.AsType[*OptionError](err); ok && !wrong.Unknown {
			return nil, nil, err
		}
		if errors.Is(err, ErrAbsent) {
			absent = errors.Join(absent, err)
			continue
		}
		passed = errors.Join(passed, err)
	}
	passed = errors.Join(passed, absent)
	if passed == nil {
		passed = errors.New("npu: this binary does not have any device family\nhint: import the package of a device for its side effect")
	}
	return nil, nil, passed
}
