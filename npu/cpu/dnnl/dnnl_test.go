//go:build cgo && linux

package dnnl

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// libs opens every version that is installed; $GOTRAIN_ONEDNN_3 may name a libdnnl.so.3 outside the linker's path.
func libs(t *testing.T) map[string]*Lib {
	t.Helper()
	t.Setenv(EnvPath, "")
	found := map[string]*Lib{}
	for _, name := range []string{"libdnnl.so.2", "libdnnl.so.3", os.Getenv("GOTRAIN_ONEDNN_3")} {
		if name == "" {
			continue
		}
		l, err := Open(name)
		if err != nil {
			t.Logf("%s is not tested: %v", name, err)
			continue
		}
		found[l.Version()] = l
	}
	if len(found) == 0 {
		t.Skip("oneDNN is not installed: apt-get install libdnnl2")
	}
	return found
}

func each(t *testing.T, f func(t *testing.T, l *Lib)) {
	for v, l := range libs(t) {
		t.Run(v, func(t *testing.T) { f(t, l) })
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// mem gives zeroed memory that is not Go's.
func mem(t *testing.T, n int64) unsafe.Pointer {
	b, err := unix.Mmap(-1, 0, int(max(n, 1)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	return unsafe.Pointer(&b[0])
}

func floats(p unsafe.Pointer, n int) []float32 { return unsafe.Slice((*float32)(p), n) }

func TestTags(t *testing.T) {
	each(t, func(t *testing.T, l *Lib) {
		dims := []int64{2, 32, 5, 7}
		for want, m := range map[string]*MD{
			"abcd": must(l.Strided(F32, dims, nil)), "acdb": must(l.NHWC(F32, dims)), "aBcd16b": must(l.Blocked(F32, dims, 16)),
			"aBcd8b": must(l.Blocked(F32, dims, 8)),
			"bacd":   must(must(l.Strided(F32, []int64{32, 2, 5, 7}, nil)).Permute(1, 0, 2, 3)),
		} {
			if got := m.Tag(); got != want {
				t.Errorf("tag %q, want %q", got, want)
			}
			if m.Bytes() != 4*2*32*5*7 {
				t.Errorf("%s has %d bytes", want, m.Bytes())
			}
		}
		gap := must(l.Strided(F32, []int64{4, 4}, []int64{8, 1}))
		if got := gap.Tag(); got != "ab:[8 1]" {
			t.Errorf("strides with gaps: tag %q", got)
		}
		if p := must(l.Blocked(F32, []int64{1, 20, 2, 2}, 16)); p.Bytes() != 4*32*4 {
			t.Errorf("20 channels padded to 32: %d bytes", p.Bytes())
		}
		if !gap.Equal(must(l.Strided(F32, []int64{4, 4}, []int64{8, 1}))) || gap.Equal(must(l.Strided(F32, []int64{4, 4}, nil))) {
			t.Error("Equal is wrong")
		}
	})
}

// A 1x1 convolution of ones: each output is the number of input channels; with the weights in the layout that the library chose.
func TestConvolutionOfOnes(t *testing.T) {
	each(t, func(t *testing.T, l *Lib) {
		x := must(l.NHWC(F32, []int64{2, 32, 8, 8}))
		y := must(l.NHWC(F32, []int64{2, 48, 8, 8}))
		w := must(l.Any(F32, []int64{48, 32, 1, 1}))
		pd := must(l.ConvForward(Conv{X: x, W: w, Y: y, Window: Window{Stride: [2]int{1, 1}}, Threads: 1}))
		if runtime.GOARCH == "amd64" && strings.Contains(pd.Impl(), "ref") { // for NEON the library has nothing better
			t.Errorf("implementation %s", pd.Impl())
		}
		w = pd.MD(WeightsMD, 0)
		px, pw, py, ps := mem(t, x.Bytes()), mem(t, w.Bytes()), mem(t, y.Bytes()), mem(t, pd.Scratch())
		for i := range floats(px, 2*32*64) {
			floats(px, 2*32*64)[i] = 1
		}
		for i := range floats(pw, int(w.Bytes()/4)) {
			floats(pw, int(w.Bytes()/4))[i] = 1
		}
		args := []Arg{{ArgSrc, x, px}, {ArgWeights, w, pw}, {ArgDst, y, py}}
		if pd.Scratch() > 0 {
			args = append(args, Arg{ArgScratchpad, pd.MD(ScratchpadMD, 0), ps})
		}
		e := must(must(pd.Create()).Bind(args))
		defer e.Close()
		s := must(l.NewStream())
		defer s.Close()
		if err := e.Run(s); err != nil {
			t.Fatal(err)
		}
		for i, v := range floats(py, 2*48*64) {
			if v != 32 {
				t.Fatalf("y[%d] = %g, want 32 (%s)", i, v, pd.Impl())
			}
		}
		if n := testing.AllocsPerRun(20, func() { e.Run(s) }); n != 0 {
			t.Errorf("Run allocates %g times", n)
		}
	})
}

func TestErrors(t *testing.T) {
	t.Setenv(EnvPath, "/nonexistent/libdnnl.so")
	if _, err := Open(""); err == nil || !strings.Contains(err.Error(), "/nonexistent/libdnnl.so") || !strings.Contains(err.Error(), "hint: ") {
		t.Errorf("a path that does not exist: %v", err)
	}
	libc := "libm.so.6"
	if _, err := Open(libc); err == nil || !strings.Contains(err.Error(), "no symbol dnnl_version") {
		t.Errorf("another library: %v", err)
	}
	each(t, func(t *testing.T, l *Lib) {
		if _, err := l.Strided(F32, nil, nil); err == nil {
			t.Error("no dimensions: no error")
		}
		x := must(l.Strided(F32, []int64{2, 3}, nil))
		if _, err := l.MatMul(x, x, nil, x, 1); err == nil {
			t.Error("a matmul that does not fit: no error")
		}
		sx := must(l.Strided(S32, []int64{3, 3}, nil))
		if _, err := l.MatMul(sx, sx, nil, sx, 1); err == nil {
			t.Errorf("a matmul of integers: %v", err)
		}
	})
}

func TestISAName(t *testing.T) {
	for _, c := range []struct {
		arch string
		isa  int
		want string
	}{
		{"amd64", 0x27, "avx512_core"}, {"amd64", 0x7, "avx2"}, {"arm64", 0x1f, "sve_512"}, {"arm64", 0x1, "asimd"}, {"arm64", 0, "default"}, {"riscv64", 1, "default"},
	} {
		if got := isaName(c.arch, c.isa); got != c.want {
			t.Errorf("%s %#x is %q, want %q", c.arch, c.isa, got, c.want)
		}
	}
}

// A library that is installed but does not fit is not called missing.
func TestAbsent(t *testing.T) {
	for reasons, want := range map[string]string{
		"libdnnl.so.3: cannot open shared object file: Cannot allocate memory": "ulimit -v",
		"/x/libdnnl.so.3: failed to map segment from shared object":            "ulimit -v",
		"libdnnl.so.3: cannot open shared object file: No such file":           "apt-get install",
	} {
		if got := absent(reasons); !strings.Contains(got, want) || !strings.Contains(got, reasons) {
			t.Errorf("%q: %s", reasons, got)
		}
	}
}
