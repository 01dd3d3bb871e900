//go:build cgo && linux

package acltest

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static void *at_open(const char *path) { return dlopen(path, RTLD_LAZY); }
static bool at_set(void *lib, const char *name, const char *value) {
    bool (*f)(const char *, const char *) = (bool (*)(const char *, const char *))dlsym(lib, "fakeSet");
    return f && f(name, value);
}
static size_t at_stats(void *lib, char *out, size_t n) {
    size_t (*f)(char *, size_t) = (size_t (*)(char *, size_t))dlsym(lib, "fakeStats");
    return f ? f(out, n) : 0;
}
static void at_zero(void *lib) {
    void (*f)(void) = (void (*)(void))dlsym(lib, "fakeZero");
    if (f) f();
}
*/
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"github.com/gotrain/gotrain/npu/acl/cann"
	"github.com/gotrain/gotrain/npu/acl/fakecann"
)

// EnvVersion names the environment variable with the version of CANN that the fake imitates.
const EnvVersion = "GOTRAIN_TEST_CANN"

// Stats is what the fake counts: what is alive, and what was called.
type Stats struct {
	Violations     int              `json:"violations"`
	FirstViolation string           `json:"first_violation"`
	Leaked         int              `json:"leaked_executors"`
	Injected       int              `json:"injected"`
	PageableCopies int              `json:"pageable_copies"`
	Tasks          int              `json:"tasks"`
	DeviceBlocks   int              `json:"device_blocks"`
	DeviceBytes    int64            `json:"device_bytes"`
	HostBlocks     int              `json:"host_blocks"`
	Streams        int              `json:"streams"`
	Events         int              `json:"events"`
	Tensors        int              `json:"tensors"`
	Scalars        int              `json:"scalars"`
	Arrays         int              `json:"arrays"`
	Lists          int              `json:"lists"`
	Repeatable     int              `json:"repeatable"`
	Comms          int              `json:"comms"`
	DeviceThreads  []int            `json:"device_threads"`
	Calls          map[string]int64 `json:"calls"`
}

var (
	folder  string         // of the fake; "" if it could not be built
	missing error          // why
	lib     unsafe.Pointer // libfakecann.so
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
	p := C.CString(filepath.Join(dir, "lib64", "libfakecann.so"))
	defer C.free(unsafe.Pointer(p))
	if lib = C.at_open(p); lib == nil {
		fmt.Fprintln(os.Stderr, "acltest: libfakecann.so cannot be loaded")
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
	C.at_zero(lib)
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
	if !turn(name, value) {
		f.t.Fatalf("acltest: FAKE_CANN_%s=%s means nothing", name, value)
	}
	if !slices.Contains(f.turns, name) {
		f.turns = append(f.turns, name)
	}
}

func turn(name, value string) bool {
	n, v := C.CString("FAKE_CANN_"+name), C.CString(value)
	defer C.free(unsafe.Pointer(n))
	defer C.free(unsafe.Pointer(v))
	return bool(C.at_set(lib, n, v))
}

// Stats reads the counters.
func (f *Fake) Stats() Stats {
	f.t.Helper()
	const size = 1 << 18
	buf := C.malloc(size)
	defer C.free(buf)
	n := C.at_stats(lib, (*C.char)(buf), size)
	var s Stats
	if n >= size {
		f.t.Fatalf("acltest: statistics of %d bytes", n)
	}
	if err := json.Unmarshal(C.GoBytes(buf, C.int(n)), &s); err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *Fake) end() {
	for _, n := range f.turns {
		if !turn(n, resting[n]) {
			f.t.Errorf("acltest: FAKE_CANN_%s=%s means nothing", n, resting[n])
		}
	}
	s := f.Stats()
	if s.Violations > 0 {
		f.t.Errorf("%d times something was done that CANN forbids, first: %s", s.Violations, s.FirstViolation)
	}
	if left := s.Alive(); left != "" {
		f.t.Errorf("left behind: %s", left)
	}
}

// Alive lists what is alive; "" if that is nothing.
func (s Stats) Alive() string {
	text := ""
	for _, c := range []struct {
		what string
		n    int
	}{{"device blocks", s.DeviceBlocks}, {"host blocks", s.HostBlocks}, {"streams", s.Streams}, {"events", s.Events}, {"tensors", s.Tensors},
		{"scalars", s.Scalars}, {"arrays", s.Arrays}, {"lists", s.Lists}, {"reusable executors", s.Repeatable}, {"lost executors", s.Leaked},
		{"communicators", s.Comms}} {
		if c.n != 0 {
			text += fmt.Sprintf("%d %s, ", c.n, c.what)
		}
	}
	return text
}

// Again runs the test in another process, with a fake of another version of CANN and more variables. It returns the output.
func Again(t *testing.T, version string, env ...string) string {
	t.Helper()
	if folder == "" {
		t.Skip(missing)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
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
