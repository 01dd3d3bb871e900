package data_test

import (
	"fmt"
	"path/filepath"

	_ "github.com/gotrain/gotrain/recipes/data"
	"github.com/gotrain/gotrain/train/data"
)

func Example() {
	dir, err := data.Locate("fashion-mini")
	if err != nil {
		panic(err)
	}
	pictures, err := filepath.Glob(filepath.Join(dir, "*-images-*.gz"))
	fmt.Println(len(pictures), err)
	// Output: 2 <nil>
}
