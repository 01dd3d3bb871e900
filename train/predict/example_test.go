package predict_test

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"os"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images"
	"github.com/gotrain/gotrain/train/predict"
)

// A model of one's own is trained, and then predicts from its checkpoint.
func Example() {
	model := func(b *graph.Builder, in train.Inputs) train.Outputs {
		logits := nn.Linear{Out: 10}.Apply(b, "fc", b.Flatten(in["image"]))
		loss, n := b.CrossEntropy(logits, in["label"])
		return train.Outputs{Loss: loss, Count: n, Logits: logits} // Logits are what Predict returns
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	noise, err := data.NewSynthetic(1, 64, 10, 3, 8, 8)
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := train.New(train.WithModel(model), train.WithData(noise, 16), train.WithSteps(3), train.WithLR(0.1), train.WithDevice("ref", 1),
		train.WithOptimizer(optim.Default(optim.SGD, 0)), train.WithCheckpoints(dir, 0))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := t.Run(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	m, err := predict.Open(dir, predict.WithModel(model), predict.WithDevice("ref", 1, nil),
		predict.WithPictures(images.Preparation{Channels: 3, Height: 8, Width: 8, Short: 8})) // noise does not say how pictures become inputs
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	grey := image.NewUniform(color.Gray{128})
	out, err := m.Predict(context.Background(), predict.Image(cropped{grey, image.Rect(0, 0, 40, 30)}), predict.Bytes([]byte("<html>")))
	fmt.Println(len(out[0].Top(5)), out[0].Err, err)
	fmt.Println(out[1].Err)
	// Output:
	// 5 <nil> <nil>
	// not a JPEG, PNG or GIF picture but text that begins with "<html>"
}

// cropped is a part of an endless picture.
type cropped struct {
	image.Image
	r image.Rectangle
}

func (c cropped) Bounds() image.Rectangle { return c.r }
