//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/npu"
)

func TestRegistered(t *testing.T) {
	if !slices.Contains(npu.Families(), "cpu") {
		t.Fatal("cpu is not registered")
	}
}

func TestOpenErrors(t *testing.T) {
	for what, o := range map[string]npu.Options{
		"negative":                {Threads: -1},
		"unknown layout":          {Extra: map[string]string{"layout": "nchw"}},
		`unknown option "colour"`: {Extra: map[string]string{"colour": "blue"}},
		"processor 5000":          {CPUs: []int{5000}},
		"/nonexistent/libdnnl.so": {Extra: map[string]string{"onednn": "/nonexistent/libdnnl.so"}},
	} {
		_, err := npu.Open("cpu", o)
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error with %q, have %v", what, err)
		}
		var wrong *npu.OptionError
		if errors.As(err, &wrong) != strings.Contains(what, "unknown") {
			t.Errorf("%v: a wrong option: %v", err, wrong)
		}
	}
	t.Setenv("GOTRAIN_ONEDNN", "/nonexistent")
	if _, err := npu.Open("cpu", npu.Options{}); err == nil || !strings.Contains(err.Error(), "/nonexistent") ||
		!strings.Contains(err.Error(), "\nhint: ") {
		t.Errorf("a library that does not exist: %v", err)
	}
}

// Without the library the device still works, by Go.
func TestWithoutLibrary(t *testing.T) {
	d := open(t, npu.Options{Extra: map[string]string{"onednn": "off"}})
	g := newRig(t, d)
	m := npu.D(npu.F32, 4, 4)
	opCase{op: npu.Op{Kind: npu.MatMul, In: []npu.Desc{m, m}, Out: []npu.Desc{m}}, impl: "go:"}.check(t, g, 1)
	if d.Info().Detail != "without oneDNN, 1 thread" {
		t.Errorf("detail %q", d.Info().Detail)
	}
}

// The trainer calls Info at every step.
func TestInfoReadsNoFiles(t *testing.T) {
	d := open(t, npu.Options{Threads: 1})
	if n := testing.AllocsPerRun(100, func() { d.Info() }); n > 12 {
		t.Errorf("%.0f allocations", n)
	}
}

func TestInfo(t *testing.T) {
	if testing.Short() {
		t.Skip("measures the machine, which takes long in an emulator")
	}
	d := open(t, npu.Options{Threads: 2, Extra: map[string]string{"onednn": libraries(t)[0], "calibrate": "true"}})
	i := d.Info()
	if i.Name != "cpu" || i.Threads != 2 || !strings.Contains(i.Detail, "oneDNN ") || !strings.HasSuffix(i.Detail, "2 threads") || i.Memory < 1<<28 ||
		len(i.Compute) != 2 {
		t.Errorf("%+v", i)
	}
	if p := i.Peak[npu.F32]; p < 1e8 || p > 1e14 {
		t.Errorf("peak %g", p)
	}
}

func TestMemory(t *testing.T) {
	d := testDevice(t)
	for _, n := range []int64{0, 1, 4096, hugePage, 3*hugePage + 5} {
		b := must(d.Alloc(n))(t)
		if b.Bytes() != n || int64(len(b.Host())) != n {
			t.Errorf("%d bytes: %d and %d", n, b.Bytes(), len(b.Host()))
		}
		if n > 0 {
			if a := uintptr(unsafe.Pointer(&b.Host()[0])); n < hugePage && a%page != 0 || n >= hugePage && (a%64 != 0 || a%hugePage >= page) {
				t.Errorf("%d bytes lie at %x", n, a)
			}
			if slices.Max(b.Host()) != 0 {
				t.Errorf("%d bytes are not zeroed", n)
			}
			b.Host()[n-1] = 1
		}
		if err := b.Free(); err != nil {
			t.Error(err)
		}
	}
	for _, n := range []int64{-1, 1 << 45, 1 << 50} {
		if _, err := d.Alloc(n); err == nil {
			t.Errorf("alloc of %d bytes: no error", n)
		}
	}
}

// The end of a large buffer wastes at most half a huge page.
func TestExtent(t *testing.T) {
	sizes := []int{hugePage, hugePage + 1, hugePage + page, hugePage*3/2 - 1, hugePage * 3 / 2, hugePage*3/2 + 1, 2*hugePage - 1, 2 * hugePage, 12345678}
	for _, n := range sizes {
		huge, all := extent(n)
		if huge%hugePage != 0 || all%page != 0 || all < n || all < huge || all-huge > hugePage/2 || all-n > hugePage/2 || huge < all && all-n >= page {
			t.Errorf("%d bytes take %d of huge pages, %d in all", n, huge, all)
		}
	}
}

func TestBindErrors(t *testing.T) {
	d := testDevice(t)
	g := newRig(t, d)
	m := npu.D(npu.F32, 8, 8)
	k := must(d.Compile(npu.Op{Kind: npu.MatMul, In: []npu.Desc{m, m}, Out: []npu.Desc{m}}))(t)
	p := g.alloc(256)
	ws := g.alloc(max(k.Workspace(), 1))
	for what, args := range map[string][]npu.Ptr{
		"2 arguments for 2 inputs and 1 outputs": {p, p},
		"input 1":                                {p, {}, p},
		"output 0":                               {p, p, {}},
		"outside a buffer of 256":                {p, p.At(4), p},
		"bytes -4":                               {p.At(-4), p, p},
	} {
		if _, err := k.Bind(args, ws); err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "matmul") {
			t.Errorf("want an error with %q, have %v", what, err)
		}
	}
	for what, op := range map[string]npu.Op{
		"unknown op kind":    {Kind: "frobnicate"},
		"no concrete layout": {Kind: npu.Relu, In: []npu.Desc{m.With(npu.Any)}, Out: []npu.Desc{m}},
		"matmul":             {Kind: npu.MatMul, In: []npu.Desc{m, npu.D(npu.F32, 7, 8)}, Out: []npu.Desc{m}},
		"not known":          {Kind: npu.Convert, In: []npu.Desc{m.With("w:never")}, Out: []npu.Desc{m}},
		"does not exist":     {Kind: npu.Convert, In: []npu.Desc{m.With("martian")}, Out: []npu.Desc{m}},
	} {
		if _, err := d.Compile(op); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error with %q, have %v", what, err)
		}
	}
	other := testDevice(t)
	l := newRig(t, other).matmul(4)
	if err := g.s.Run([]npu.Launch{l}); err == nil || !strings.Contains(err.Error(), "another device") {
		t.Errorf("a launch of another device: %v", err)
	}
	e := must(other.NewEvent())(t)
	if g.s.Record(e) == nil || g.s.Wait(e) == nil || g.s.Do(nil) == nil || g.s.CopyIn(p, make([]byte, 257)) == nil ||
		g.s.CopyOut(make([]byte, 8), npu.Ptr{}) == nil {
		t.Error("a wrong call on a stream has no error")
	}
}

// The device binds the stream's thread, and OpenMP's with it.
func TestAffinity(t *testing.T) {
	var mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil || mine.Count() < 2 {
		t.Skip("one processor")
	}
	last := 0
	for c := range 1024 {
		if mine.IsSet(c) {
			last = c
		}
	}
	d := open(t, npu.Options{CPUs: []int{last}, Extra: map[string]string{"onednn": libraries(t)[0]}})
	g := newRig(t, d)
	var got unix.CPUSet
	g.s.Do(func() error { return unix.SchedGetaffinity(0, &got) })
	g.sync()
	if got.Count() != 1 || !got.IsSet(last) {
		t.Errorf("bound to %d processors", got.Count())
	}
	d = open(t, npu.Options{CPUs: []int{1000}, Extra: map[string]string{"onednn": libraries(t)[0]}})
	if _, err := d.NewStream("x"); err == nil || !strings.Contains(err.Error(), "1000") {
		t.Errorf("a processor that does not exist: %v", err)
	}
}

// Without cgo the package is empty, and the binary says what is missing.
func TestWithoutCgo(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	cmd := exec.Command("go", "test", "-run", "TestNoCgo", "-count=1", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Large buffers that follow one another do not begin at the same place of a page, so that their elements do not compete for the same places of a cache, and
// every one of 64 lines is used.
func TestColours(t *testing.T) {
	d := open(t, npu.Options{})
	seen := map[uintptr]bool{}
	var last uintptr
	for i := range 64 {
		b, err := d.Alloc(hugePage)
		if err != nil {
			t.Fatal(err)
		}
		m := b.Host()
		at := uintptr(unsafe.Pointer(&m[0])) % page
		if i > 0 && (at-last)%128 == 0 || at%64 != 0 {
			t.Errorf("buffer %d begins at %d of its page, the one before at %d", i, at, last)
		}
		m[len(m)-1] = 1 // inside the mapping
		seen[at], last = true, at
		if err := b.Free(); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 64 {
		t.Errorf("%d places", len(seen))
	}
}
