package augment

import (
	"fmt"

	"github.com/gotrain/gotrain/train/data"
)

// Jitter changes brightness, contrast, saturation and hue at random, in random order, as torchvision's ColorJitter does. Brightness, contrast and saturation
// are multiplied by a factor from max(0, 1-x) to 1+x; the hue turns by -Hue to Hue of a full turn.
type Jitter struct{ Brightness, Contrast, Saturation, Hue float64 }

// Check refuses what is out of range.
func (j Jitter) Check() error {
	for _, v := range []float64{j.Brightness, j.Contrast, j.Saturation} {
		if !(v >= 0 && v <= 10) {
			return fmt.Errorf("augment: invalid colour jitter %+v\nhint: brightness, contrast and saturation are 0 to 10", j)
		}
	}
	if !(j.Hue >= 0 && j.Hue <= 0.5) {
		return fmt.Errorf("augment: colour jitter of hue %g\nhint: 0 to 0.5 of a turn", j.Hue)
	}
	return nil
}

// Draw draws the operations.
func (j Jitter) Draw(r *data.Rand, _, _ int, steps []Step) []Step {
	order := [4]int{0, 1, 2, 3}
	for i := 3; i > 0; i-- {
		k := r.IntN(i + 1)
		order[i], order[k] = order[k], order[i]
	}
	for _, i := range order {
		x := [4]float64{j.Brightness, j.Contrast, j.Saturation, j.Hue}[i]
		if x == 0 {
			continue
		}
		if i == 3 {
			steps = append(steps, Step{"Hue", r.Uniform(-x, x)})
			continue
		}
		steps = append(steps, Step{[3]string{"Brightness", "Contrast", "Color"}[i], r.Uniform(max(0, 1-x), 1+x)})
	}
	return steps
}

func (j Jitter) String() string {
	return fmt.Sprintf("colour jitter %g %g %g %g", j.Brightness, j.Contrast, j.Saturation, j.Hue)
}
