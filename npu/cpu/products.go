//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// Some processors have instructions that multiply bf16 at half the rate at which they multiply float32: Sapphire Rapids without its AMX, as many virtual
// machines show it. On others it is twice the rate. So the device measures, once a process, and computes products of bf16 tensors by bf16 instructions
// (npu.NativeProducts) or in float32 (npu.WideProducts), which is also more exact.

// Rates whose quotient decides. The true ones are 1/2, 1 and 2, as instructions begin once in so many cycles; what lies between comes from other programs.
const (
	slowBF16 = 0.6  // a lower quotient of bf16 and float32 is slow
	fastBF16 = 0.85 // a higher one is fast
	halfway  = 0.7  // what a long measurement between them is compared with
)

// Turns of a short measurement, which takes a millisecond, and of a long one.
const (
	shortTurns = 8
	longTurns  = 64
)

// comparison is a measurement of so many turns: operations a second in float32 and with bf16 instructions.
type comparison func(turns int) (f32, bf16 float64)

// productsOf decides how products of bf16 are computed by a processor that the library calls isa, and says why. A measurement that is not clear is followed
// by a longer one; no processor is known to be in between.
func productsOf(isa string, measure comparison) (ways npu.Products, why string) {
	switch {
	case !multipliesBF16(isa):
		return npu.WideProducts, "no bf16 instructions"
	case strings.Contains(isa, "amx"):
		return npu.NativeProducts, "amx"
	}
	f32, bf16 := measure(shortTurns)
	limit := fastBF16
	if r := ratio(f32, bf16); r >= slowBF16 && r <= fastBF16 {
		a, b := measure(longTurns)
		f32, bf16, limit = max(f32, a), max(bf16, b), halfway
	}
	r := ratio(f32, bf16)
	if r == 0 { // no loop for this processor
		return npu.NativeProducts, "bf16 instructions, not measured"
	}
	why = fmt.Sprintf("bf16 instructions do %.1f times the work of f32", r)
	if r < limit {
		return npu.WideProducts, why
	}
	return npu.NativeProducts, why
}

func ratio(f32, bf16 float64) float64 {
	if f32 <= 0 {
		return 0
	}
	return bf16 / f32
}

// multipliesBF16 reports whether the library has fast code for bf16 products. Without the instructions it has no bf16 kernels (AVX2), or emulates them at a
// fifth of the speed of float32 (AVX-512).
func multipliesBF16(isa string) bool {
	return strings.Contains(isa, "bf16") || strings.Contains(isa, "amx") || strings.Contains(isa, "fp16")
}

// measured has what was decided for an instruction set of this process.
var measured = struct {
	sync.Mutex
	by map[string]decision
}{by: map[string]decision{}}

type decision struct {
	products npu.Products
	why      string
}

// fastProducts is productsOf for this processor; it measures once.
func fastProducts(isa string) decision {
	measured.Lock()
	defer measured.Unlock()
	got, ok := measured.by[isa]
	if !ok {
		got.products, got.why = productsOf(isa, kern.Compare)
		measured.by[isa] = got
	}
	return got
}

// hasBF16 reports whether the processor has instructions for bf16 that the library uses. What is no product uses them in any case.
func (d *Device) hasBF16() bool { return multipliesBF16(d.isa) }

// nativeBF16 reports whether products of bf16 are computed by bf16 instructions.
func (d *Device) nativeBF16() bool { return d.decided.Load().products == npu.NativeProducts }

// decideProducts decides how products of bf16 are computed: as an option says, or as is faster.
func (d *Device) decideProducts(option string) error {
	switch option {
	case "", "auto":
		got := fastProducts(d.isa)
		d.decided.Store(&got)
		return nil
	case string(npu.NativeProducts), string(npu.WideProducts):
		d.fixed = true
		if err := d.UseProducts(npu.Products(option)); err != nil {
			return &npu.OptionError{Err: fmt.Errorf("cpu: open: option bf16: %w", err)}
		}
		return nil
	}
	return &npu.OptionError{Err: fmt.Errorf("cpu: open: option bf16 is %q\nhint: use one of auto, %s, %s", option, npu.NativeProducts, npu.WideProducts)}
}

var _ npu.Multiplier = (*Device)(nil)

// Products implements npu.Multiplier. Without bf16 instructions there is no choice.
func (d *Device) Products() (p npu.Products, fixed bool) {
	if !d.hasBF16() {
		return "", false
	}
	return d.decided.Load().products, d.fixed
}

// UseProducts implements npu.Multiplier.
func (d *Device) UseProducts(p npu.Products) error {
	if p != npu.NativeProducts && p != npu.WideProducts {
		return fmt.Errorf("products of bf16 are %q\nhint: use %s or %s", p, npu.NativeProducts, npu.WideProducts)
	}
	if p == npu.NativeProducts && !d.hasBF16() {
		return fmt.Errorf("this processor, as oneDNN and $%s see it, has no bf16 instructions\nhint: use %s", kern.EnvISA, npu.WideProducts)
	}
	if now := d.decided.Load(); now != nil && now.products == p {
		return nil
	}
	d.decided.Store(&decision{p, "as asked for"})
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.chosen)
	clear(d.bodies)
	if d.peak != nil { // the other way has another one
		d.peak = maps.Clone(d.peak)
		delete(d.peak, npu.BF16)
	}
	return nil
}

// says describes how products are computed, and why; "" where there is no choice.
func (d *Device) says() string {
	switch now := d.decided.Load(); {
	case !d.hasBF16():
		return ""
	case now.products == npu.WideProducts:
		return ", bf16 products in f32 (" + now.why + ")"
	default:
		return ", native bf16 products (" + now.why + ")"
	}
}
