package resnet

import (
	"fmt"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
)

// Config describes a network. The zero value with a Depth is torchvision's (v1.5, 1000 classes).
type Config struct {
	Depth   int  `json:"depth,omitempty"`   // 18, 34, 50, 101 or 152; 0: Blocks and Bottleneck say it
	Classes int  `json:"classes,omitempty"` // 0 is 1000
	Width   int  `json:"width,omitempty"`   // channels of the first stage; 0 is 64
	V1      bool `json:"v1,omitempty"`      // stride in the first 1x1 convolution of a bottleneck (arXiv 1512.03385) instead of the 3x3
	// SmallStem is for images of about 32 pixels: a 3x3 convolution with stride 1 and no pooling.
	SmallStem bool `json:"small_stem,omitempty"`
	// ZeroInitLast starts the last norm's weight of each block with 0 (arXiv 1706.02677).
	ZeroInitLast bool `json:"zero_init_last,omitempty"`
	// DropPath is the probability with which the last block drops its convolutions for a sample in training: stochastic depth (arXiv 1603.09382). It rises
	// linearly with the depth from 0 in the first block.
	DropPath float64 `json:"drop_path,omitempty"`
	Eps      float64 `json:"eps,omitempty"`      // of the batch norms; 0 is 1e-5
	Momentum float64 `json:"momentum,omitempty"` // of the running statistics; 0 is 0.1

	Blocks     [4]int `json:"blocks,omitzero"`      // blocks of each stage, where Depth is 0
	Bottleneck bool   `json:"bottleneck,omitempty"` // kind of block, where Depth is 0
}

var depths = map[int]struct {
	blocks     [4]int
	bottleneck bool
}{
	18: {[4]int{2, 2, 2, 2}, false}, 34: {[4]int{3, 4, 6, 3}, false},
	50: {[4]int{3, 4, 6, 3}, true}, 101: {[4]int{3, 4, 23, 3}, true}, 152: {[4]int{3, 8, 36, 3}, true},
}

// check fills in defaults.
func (c Config) check() (Config, error) {
	if c.Depth != 0 {
		d, ok := depths[c.Depth]
		if !ok {
			return c, fmt.Errorf("resnet: no depth %d\nhint: 18, 34, 50, 101 or 152, or set Blocks", c.Depth)
		}
		c.Blocks, c.Bottleneck = d.blocks, d.bottleneck
	}
	if c.Classes == 0 {
		c.Classes = 1000
	}
	if c.Width == 0 {
		c.Width = 64
	}
	for _, n := range c.Blocks {
		if n < 1 {
			return c, fmt.Errorf("resnet: neither Depth nor four Blocks are set")
		}
	}
	if c.Classes < 1 || c.Width < 1 {
		return c, fmt.Errorf("resnet: classes %d and width %d must be positive", c.Classes, c.Width)
	}
	if !(c.DropPath >= 0 && c.DropPath < 1) {
		return c, fmt.Errorf("resnet: drop path %g, want 0 … 1 (excluded)", c.DropPath)
	}
	if c.Eps < 0 || c.Momentum < 0 || c.Momentum > 1 {
		return c, fmt.Errorf("resnet: eps %g or momentum %g out of range", c.Eps, c.Momentum)
	}
	return c, nil
}

// Build adds the network to b and returns the logits [N Classes] for images x [N C H W]. Parameters are named, and declared in the order, as in torchvision.
// An error is b's sticky one.
func Build(b *graph.Builder, x *graph.Node, cfg Config) *graph.Node {
	c, err := cfg.check()
	if err != nil {
		b.Failf("%w", err)
		return x
	}
	return nn.Linear{Out: c.Classes}.Apply(b, "fc", b.GlobalAvgPool(c.stages(b, x)[4]))
}

// Stages adds the network without its classifier and returns what the stem and each of the four stages put out: features for a custom head. Their
// channels are Width, then 1, 2, 4 and 8 times Width (with bottlenecks four times as many). Without SmallStem their sides are 4, 4, 8, 16 and 32 times
// shorter than those of x, with it 1, 1, 2, 4 and 8 times.
func Stages(b *graph.Builder, x *graph.Node, cfg Config) [5]*graph.Node {
	c, err := cfg.check()
	if err != nil {
		b.Failf("%w", err)
		return [5]*graph.Node{x, x, x, x, x}
	}
	return c.stages(b, x)
}

func (c Config) stages(b *graph.Builder, x *graph.Node) (out [5]*graph.Node) {
	x = c.stem(b, x)
	out[0] = x
	drop := nn.DropPathRates(c.DropPath, c.Blocks[0]+c.Blocks[1]+c.Blocks[2]+c.Blocks[3])
	for stage, n := range c.Blocks {
		b.In(fmt.Sprintf("layer%d", stage+1), func() {
			for i := range n {
				stride := 1
				if i == 0 && stage > 0 {
					stride = 2
				}
				b.In(fmt.Sprint(i), func() { x = c.block(b, x, c.Width<<stage, stride, drop[0]) })
				drop = drop[1:]
			}
		})
		out[stage+1] = x
	}
	return out
}

func (c Config) stem(b *graph.Builder, x *graph.Node) *graph.Node {
	kernel, stride := 7, 2
	if c.SmallStem {
		kernel, stride = 3, 1
	}
	x = c.conv(c.Width, kernel, stride).Apply(b, "conv1", x)
	x = b.Relu(c.norm(false).Apply(b, "bn1", x))
	if !c.SmallStem {
		x = nn.MaxPool(3, 2, 1).Apply(b, "", x)
	}
	return x
}

// conv is a convolution without bias, padded to keep the size at stride 1. Kaiming's initialiser counts the fan-out, as torchvision does.
func (c Config) conv(out, kernel, stride int) nn.Conv2D {
	return nn.Conv2D{Out: out, Kernel: kernel, Stride: stride, Pad: kernel / 2, Init: graph.KaimingNormal(graph.FanOut)}
}

func (c Config) norm(last bool) nn.BatchNorm {
	return nn.BatchNorm{Eps: c.Eps, Momentum: c.Momentum, ZeroInit: last && c.ZeroInitLast}
}

// block is x + convolutions of x, which are dropped for a sample with probability drop; the shortcut is projected if the shape changes.
func (c Config) block(b *graph.Builder, x *graph.Node, width, stride int, drop float64) *graph.Node {
	out := width
	convs := []nn.Conv2D{c.conv(width, 3, stride), c.conv(width, 3, 1)}
	if c.Bottleneck {
		out = 4 * width
		s1, s2 := 1, stride
		if c.V1 {
			s1, s2 = stride, 1
		}
		convs = []nn.Conv2D{c.conv(width, 1, s1), c.conv(width, 3, s2), c.conv(out, 1, 1)}
	}
	y := x
	for i, conv := range convs {
		last := i == len(convs)-1
		y = conv.Apply(b, fmt.Sprintf("conv%d", i+1), y)
		if y = c.norm(last).Apply(b, fmt.Sprintf("bn%d", i+1), y); !last {
			y = b.Relu(y)
		}
	}
	if stride != 1 || b.Dim(x, 1) != out {
		b.In("downsample", func() {
			x = c.conv(out, 1, stride).Apply(b, "0", x)
			x = c.norm(false).Apply(b, "1", x)
		})
	}
	return b.Relu(b.Add(b.DropPath(y, drop), x))
}
