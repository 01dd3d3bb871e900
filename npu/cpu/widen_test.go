//go:build cgo && linux && amd64

package cpu

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// The comparisons with package ref hold on processors with fewer instructions than this one: each is played by a process of its own, as the library looks at
// the processor once.
func TestLesserProcessors(t *testing.T) {
	if os.Getenv(kern.EnvISA) != "" {
		t.Skip("this is such a process")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const tests = "^(TestConv|TestConvImplementations|TestPreferredLayout|TestLayoutsAreKept|TestWinograd|TestWinogradSuite|TestMatMul|TestPool|" +
		"TestMaxPoolBackward|TestKinds|TestConvert|TestConvertGroupedWeights|" +
		"TestLanguageKinds|TestLinearCrossEntropy|TestAttention|TestWidened)$"
	for _, isa := range []string{"avx2", "avx512"} {
		t.Run(isa, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(exe, "-test.run", tests, "-test.short")
			cmd.Env = append(os.Environ(), kern.EnvISA+"="+isa)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s=%s: %v\n%s", kern.EnvISA, isa, err, out)
			}
		})
	}
}

// Without instructions for bf16, or with slow ones, the kernels are float32's, their scratch memory is part of the workspace, and the device says so.
func TestWidened(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *Device) {
		if d.nativeBF16() {
			t.Skip("this device computes in bf16")
		}
		if w := d.Info().Widened; w[npu.BF16] != npu.F32 {
			t.Errorf("the device does not say that bf16 is widened: %v", w)
		}
		x, w, y := npu.D(npu.BF16, 2, 32, 14, 14).With(npu.Any), npu.D(npu.BF16, 64, 32, 3, 3).With(npu.Any), npu.D(npu.BF16, 2, 64, 14, 14).With(npu.Any)
		op := npu.Op{Kind: npu.Conv2D, Attrs: npu.Attrs{"pad": []int{1, 1, 1, 1}}, In: []npu.Desc{x, w}, Out: []npu.Desc{y}}
		wide := func(op npu.Op) npu.Kernel { return must(d.Compile(must(d.Choose(op))(t)))(t) }
		k, k32 := wide(op), wide(inF32(op))
		if k.Impl() != k32.Impl() {
			t.Errorf("bf16 is executed by %s, float32 by %s", k.Impl(), k32.Impl())
		}
		if want := 2 * (x.Shape.Elems() + w.Shape.Elems() + y.Shape.Elems()); k.Workspace() < want {
			t.Errorf("a workspace of %d bytes holds no float32 copies", k.Workspace())
		}
	})
}

// An op that only plain loops execute is noticed if it is large.
func TestSlowIsTold(t *testing.T) {
	d := open(t, npu.Options{Extra: map[string]string{"onednn": "off"}})
	for _, n := range []int{16, 512} {
		m := npu.D(npu.F32, n, n)
		must(d.Compile(npu.Op{Kind: npu.MatMul, In: []npu.Desc{m, m}, Out: []npu.Desc{m}}))(t)
	}
	if slow := d.Info().Slow; len(slow) != 1 || !strings.Contains(slow[0], "512") {
		t.Errorf("slow: %q", slow)
	}
}

func TestUnknownISA(t *testing.T) {
	t.Setenv(kern.EnvISA, "avx3")
	if _, err := Open(npu.Options{}); err == nil || !strings.Contains(err.Error(), "avx512_bf16") {
		t.Errorf("an instruction set that does not exist: %v", err)
	}
}
