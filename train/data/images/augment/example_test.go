package augment_test

import (
	"fmt"

	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images/augment"
)

// The operations that a policy draws for one sample of one epoch are always the same.
func Example() {
	p := augment.Pipeline{Policy: augment.RandAugment{Magnitude: 9}, Erase: augment.Erase{Prob: 0.25}}
	fmt.Println(p)
	pix := &augment.Pixels{}
	pix.Reset(32, 32, 3)
	for i := range pix.Pix {
		pix.Pix[i] = byte(i)
	}
	r := data.SampleRand(1, 0, 4)
	fmt.Println(p.Policy.Draw(&r, 32, 32, nil))
	p.Pixels(&r, pix, &augment.Scratch{})
	// Output:
	// RandAugment, 2 operations of magnitude 9; random erasing 0.25 with 0
	// [{Solarize 26} {Rotate -27}]
}
