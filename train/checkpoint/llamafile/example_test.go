package llamafile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/train/checkpoint/llamafile"
)

func Example() {
	m, err := llamafile.Open("../../../recipes/data/stories260k")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	c := m.Config()
	fmt.Printf("%s: %d layers, width %d, %d heads over %d, %d parameters\n", m.Format(), c.Layers, c.Dim, c.Heads, c.KVHeads, c.Params())

	norm := make([]float32, c.Dim)
	if err := m.Read("model.norm.weight", norm); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("model.norm.weight begins with %.4f\n", norm[:3])

	dir, err := os.MkdirTemp("", "export")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	report, err := llamafile.Export(context.Background(), m, llamafile.Llama2C, filepath.Join(dir, "stories.bin"), llamafile.Options{})
	fmt.Println(report.Files, report.Bytes, "bytes", err)
	// Output:
	// hf: 5 layers, width 64, 8 heads over 4, 260032 parameters
	// model.norm.weight begins with [2.4583 1.3673 1.7504]
	// [stories.bin] 1056540 bytes <nil>
}
