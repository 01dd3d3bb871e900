package foreign_test

import (
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/train/foreign"
)

func Example() {
	_, err := foreign.Open("/")
	fmt.Println(errors.Is(err, foreign.ErrNotRegular))
	fmt.Println(foreign.Printable("weights\x1b[2J.bin"))
	// Output:
	// true
	// weights\x1b[2J.bin
}
