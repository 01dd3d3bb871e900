package mosaic_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/train/data/images/mosaic"
)

func ExampleWrite() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	err = mosaic.Write("../../../../recipes/data/flowers/train", filepath.Join(dir, "all"), 1)
	_, lost := os.Stat(filepath.Join(dir, "all", "000.jpg"))
	fmt.Println(err, lost)
	// Output: <nil> <nil>
}
