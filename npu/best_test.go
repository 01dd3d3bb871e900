package npu

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// named is a device that has a name and nothing else.
type named struct {
	Device
	name string
}

func (d named) Info() Info { return Info{Name: d.name} }

// with runs f with these families only.
func with(t *testing.T, these map[string]family, f func()) {
	t.Helper()
	mu.Lock()
	kept := families
	families = these
	mu.Unlock()
	defer func() { mu.Lock(); families = kept; mu.Unlock() }()
	f()
}

// The best family that opens is taken, and why a better one was not is reported.
func TestOpenBest(t *testing.T) {
	ok := func(name string) Opener { return func(Options) (Device, error) { return named{name: name}, nil } }
	broken := func(Options) (Device, error) { return nil, errors.New("no library") }
	wrong := func(unknown bool) Opener {
		return func(Options) (Device, error) {
			return nil, &OptionError{Err: errors.New("no such value"), Unknown: unknown}
		}
	}
	none := func(Options) (Device, error) { return nil, fmt.Errorf("no board: %w", ErrAbsent) }
	for _, c := range []struct {
		name         string
		families     map[string]family
		want, passed string
		fails        bool
	}{
		{"the best", map[string]family{"slow": {ok("slow"), 0}, "fast": {ok("fast"), 10}}, "fast", "", false},
		{"the second best", map[string]family{"slow": {ok("slow"), 0}, "fast": {broken, 10}}, "slow", "no library", false},
		{"the best is not in the machine", map[string]family{"slow": {ok("slow"), 0}, "fast": {none, 10}}, "slow", "", false},
		{"a mistake in what was asked for", map[string]family{"slow": {ok("slow"), 0}, "fast": {wrong(false), 10}}, "", "no such value", true},
		{"an option of another family", map[string]family{"slow": {ok("slow"), 0}, "fast": {wrong(true), 10}}, "slow", "no such value", false},
		{"only what is absent", map[string]family{"fast": {none, 10}}, "", "no board", true},
		{"none opens", map[string]family{"slow": {broken, 0}, "fast": {broken, 10}}, "", "no library", true},
		{"none is registered", nil, "", "import the package", true},
	} {
		with(t, c.families, func() {
			dev, passed, err := OpenBest(Options{})
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), c.passed) || dev != nil || passed != nil {
					t.Errorf("%s: %v, %v, %v", c.name, dev, passed, err)
				}
				return
			}
			if err != nil || dev.Info().Name != c.want {
				t.Errorf("%s: %v, %v", c.name, dev, err)
			}
			if (passed != nil) != (c.passed != "") || passed != nil && !strings.Contains(passed.Error(), c.passed) {
				t.Errorf("%s: passed over because of %v", c.name, passed)
			}
		})
	}
}
