package amount_test

import (
	"fmt"

	"github.com/gotrain/gotrain/internal/amount"
)

func Example() {
	fmt.Println(amount.Count(25557032), "parameters in", amount.Bytes(4*25557032))
	// Output: 25,557,032 parameters in 97.5 MiB
}
