package baseline_test

import (
	"fmt"
	"image"
	"os"

	"github.com/gotrain/gotrain/train/data/images/baseline"
)

func Example() {
	file, err := os.ReadFile("../testdata/zoo/baseline_420.jpg")
	if err != nil {
		fmt.Println(err)
		return
	}
	var d baseline.Decoder
	if err := d.Parse(file); err != nil {
		fmt.Println(err)
		return
	}
	w, h := d.Size()
	region := image.Rect(100, 50, 102, 51)
	pix := make([]byte, 3*region.Dx()*region.Dy())
	err = d.Decode(file, region, pix)
	fmt.Println(w, h, pix, err)
	// Output: 227 151 [56 24 1 112 78 53] <nil>
}
