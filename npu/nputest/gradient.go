package nputest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gotrain/gotrain/npu"
)

// CheckGradient compares the gradients of a case in float64 (Case.Grads) with central differences of its first call, all computed by package ref. Each is
// compared along two random directions through all elements: (f(x+hv) - f(x-hv)) / 2h with h = 1e-5 must be the product of the gradient and v. The method's
// error is about h² = 1e-10 of the third derivative, and rounding 1e-16/h = 1e-11.
func CheckGradient(c Case) error {
	if c.DType != npu.F64 {
		return fmt.Errorf("nputest: %s: differences need float64", c)
	}
	if len(c.Grads) == 0 {
		return fmt.Errorf("nputest: %s has no gradients", c)
	}
	data, err := c.inputs()
	if err != nil {
		return err
	}
	given := append([][]byte{}, data...)
	for i := range c.Calls {
		if err := c.reference(i, data); err != nil {
			return fmt.Errorf("nputest: %s: %w", c, err)
		}
	}
	r := rand.New(rand.NewPCG(7, 7))
	for _, g := range c.Grads {
		grad, err := decode(c.Tensors[g.Of].Desc, data[g.Of])
		if err != nil {
			return err
		}
		for range 2 {
			if err := c.along(r, g, given, grad); err != nil {
				return fmt.Errorf("nputest: %s: gradient of tensor %d: %w", c, g.By, err)
			}
		}
	}
	return nil
}

// along compares one gradient along a random direction.
func (c Case) along(r *rand.Rand, g Grad, given [][]byte, grad []float64) error {
	const h = 1e-5
	x, dir := c.Tensors[g.By].Values, make([]float64, len(grad))
	var product, size float64
	for i := range dir {
		dir[i] = r.NormFloat64()
		product += grad[i] * dir[i]
		size = max(size, math.Abs(grad[i]*dir[i]))
	}
	diff := 0.0
	for _, sign := range []float64{1, -1} {
		moved := make([]float64, len(x))
		for i := range x {
			moved[i] = x[i] + sign*h*dir[i]
		}
		f, err := c.weighted(g, given, moved)
		if err != nil {
			return err
		}
		diff += sign * f / (2 * h)
	}
	if d := math.Abs(diff - product); !(d <= 1e-6*max(1, math.Abs(diff), size)) {
		return fmt.Errorf("along a direction it is %.12g, the central difference %.12g", product, diff)
	}
	return nil
}

// weighted is the sum of Y times DY of the first call, with other values of the tensor By.
func (c Case) weighted(g Grad, given [][]byte, by []float64) (float64, error) {
	data := append([][]byte{}, given...)
	var err error
	if data[g.By], err = encode(c.Tensors[g.By].Desc, by); err != nil {
		return 0, err
	}
	if err := c.reference(0, data); err != nil {
		return 0, err
	}
	y, err := decode(c.Tensors[g.Y].Desc, data[g.Y])
	if err != nil {
		return 0, err
	}
	dy, err := decode(c.Tensors[g.DY].Desc, given[g.DY])
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for i, v := range y {
		sum += v * dy[i]
	}
	return sum, nil
}
