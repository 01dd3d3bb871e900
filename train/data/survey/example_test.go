package survey_test

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/survey"
)

// Three samples, of which two are the same with different labels.
func Example() {
	src, err := data.FromSlices("three", data.Floats("image", []float32{0, 1, 0.5, 0.5, 0, 1}, 1, 1, 2), data.Labels("label", []int{0, 1, 1}))
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := survey.Examine(context.Background(), []survey.Set{{Name: "train", Source: src}}, survey.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Sets[0].Classes, r.Sets[0].Mean)
	fmt.Println(r.Duplicates)
	// Output:
	// [{0 1} {1 2}] [0.5]
	// [{[{train sample 0 of slices three 0} {train sample 2 of slices three 1}] false true}]
}
