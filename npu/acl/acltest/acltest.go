//go:build cgo && linux

package acltest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/npu/acl/cann"
	"github.com/gotrain/gotrain/npu/acl/fakecann"
	"github.com/gotrain/gotrain/npu/acl/fakecann/fakectl"
)

// EnvVersion names the environment variable with the version of CANN that the fake imitates.
const EnvVersion = "GOTRAIN_TEST_CANN"

var (
	folder  string // of the fake; "" if it could not be built
	missing error  // why
	control *fakectl.Fake
)

// Main builds the fake, sets the environment for it and runs the tests.
func Main(m *testing.M) {
	os.Exit(run(m.Run))
}

func run(tests func() int) int {
	dir, err := os.MkdirTemp("", "acltest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	version := os.Getenv(EnvVersion)
	if version == "" {
		version = "8.1"
	}
	err = fakecann.BuildWith(dir, fakecann.Options{Version: version})
	switch {
	case errors.Is(err, fakecann.ErrNoCompiler):
		missing = err
		return tests()
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.Setenv(cann.EnvHome, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if control, err = fakectl.Open(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	folder = dir
	return tests()
}

// Fake is the fake CANN of the process, for one test at a time.
type Fake struct {
	t     testing.TB
	turns []string // switches that were set
}

// resting is what each switch is set to at the end of a test that set it.
var resting = map[string]string{"INJECT": "", "DELAY": "", "SOC": "A2", "DEVICES": "8", "MEMORY_MIB": "4096", "JITTER": "0", "INFNAN": "1", "UTIL": "37",
	"TIME_SCALE": "1", "DESTROY": "1", "SEED": "1"}

// Use returns the fake for a test, which is skipped where there is no C compiler. At the end of the test nothing may be alive in the fake and nothing
// forbidden may have been done.
func Use(t testing.TB) *Fake {
	t.Helper()
	if folder == "" {
		t.Skip(missing)
	}
	f := &Fake{t: t}
	control.Zero()
	t.Cleanup(f.end)
	return f
}

// Dir is the folder of the fake toolkit.
func (f *Fake) Dir() string { return folder }

// Set turns a switch FAKE_CANN_name until the end of the test.
func (f *Fake) Set(name, value string) {
	f.t.Helper()
	if _, ok := resting[name]; !ok {
		f.t.Fatalf("acltest: no value to set %s back to", name)
	}
	if err := control.Set("FAKE_CANN_"+name, value); err != nil {
		f.t.Fatal(err)
	}
	if !slices.Contains(f.turns, name) {
		f.turns = append(f.turns, name)
	}
}

// Stats reads the counters.
func (f *Fake) Stats() *fakecann.Stats {
	f.t.Helper()
	s, err := control.Stats()
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *Fake) end() {
	for _, n := range f.turns {
		if err := control.Set("FAKE_CANN_"+n, resting[n]); err != nil {
			f.t.Error(err)
		}
	}
	s := f.Stats()
	if s.Violations > 0 {
		f.t.Errorf("%d times something was done that CANN forbids, first: %s", s.Violations, s.FirstViolation)
	}
	if left := s.Leaks(); left != "" {
		f.t.Errorf("left behind: %s", left)
	}
}

// Again runs a test in another process, with a fake of another version of CANN and more variables. It returns the output.
func Again(t *testing.T, version, test string, env ...string) string {
	t.Helper()
	if folder == "" {
		t.Skip(missing)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), append([]string{EnvVersion + "=" + version, cann.EnvHome + "="}, env...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("with CANN %s: %v\n%s", version, err, out)
	}
	return string(out)
}

// Version is the version that the fake of this process imitates.
func Version() string {
	if v := os.Getenv(EnvVersion); v != "" {
		return v
	}
	return "8.1"
}

// Lenient is Use for a test that leaves something behind on purpose, which must be the only one of its process.
func Lenient(t testing.TB) *Fake {
	t.Helper()
	if folder == "" {
		t.Skip(missing)
	}
	return &Fake{t: t}
}
