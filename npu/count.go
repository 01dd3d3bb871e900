package npu

import (
	"errors"
	"fmt"
)

// Counter returns how many devices of a family this process may use on this machine. It must neither open a device nor initialise its library,
// because the caller may be a supervisor that starts the ranks: it reads /dev, /sys or the environment.
type Counter func() (int, error)

// Locator returns the NUMA node of a device, by the Index of Options, without opening it.
type Locator func(index int) (node int, err error)

// ErrUncounted is the error of Count and Node for a family that does not tell.
var ErrUncounted = errors.New("npu: this device family cannot be counted")

// RegisterCounter tells how many devices of a family there are. Families without a counter are the host itself. It is called from init of the
// device's package, beside Register.
func RegisterCounter(name string, count Counter) {
	mu.Lock()
	defer mu.Unlock()
	if _, dup := counters[name]; dup {
		panic("npu: counter of a device family registered twice: " + name)
	}
	counters[name] = count
}

// RegisterLocator tells on which NUMA node each device of a family is. It is called from init of the device's package.
func RegisterLocator(name string, locate Locator) {
	mu.Lock()
	defer mu.Unlock()
	if _, dup := places[name]; dup {
		panic("npu: locator of a device family registered twice: " + name)
	}
	places[name] = locate
}

// Count returns how many devices of a family this machine has; ErrUncounted if the family does not tell. 0 devices are not an error.
func Count(family string) (int, error) {
	mu.Lock()
	count := counters[family]
	mu.Unlock()
	if count == nil {
		return 0, ErrUncounted
	}
	n, err := count()
	if err != nil {
		return 0, fmt.Errorf("npu: counting devices of family %s: %w", family, err)
	}
	return n, nil
}

// CountBest returns the family that OpenBest would most likely open, and how many devices it has: the family of highest priority that has
// a device. n is 0 for a family that does not count. err joins the errors of families that could not be counted.
func CountBest() (family string, n int, err error) {
	for _, name := range byPriority() {
		n, cerr := Count(name)
		switch {
		case errors.Is(cerr, ErrUncounted):
			return name, 0, err
		case cerr != nil:
			err = errors.Join(err, cerr)
		case n > 0:
			return name, n, err
		}
	}
	return "", 0, err
}

// Node returns the NUMA node of device index of a family; ErrUncounted if the family does not tell.
func Node(family string, index int) (int, error) {
	mu.Lock()
	locate := places[family]
	mu.Unlock()
	if locate == nil {
		return 0, ErrUncounted
	}
	node, err := locate(index)
	if err != nil {
		return 0, fmt.Errorf("npu: NUMA node of device %d of family %s: %w", index, family, err)
	}
	return node, nil
}
