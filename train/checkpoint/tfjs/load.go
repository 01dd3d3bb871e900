package tfjs

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Eps is what the network's batch norms add to the variance.
const Eps = 1e-3

// Mean and Std of the input, in the order R, G, B, for pixel values from 0 to 1.
var (
	Mean = [3]float64{123.68 / 255, 116.779 / 255, 103.939 / 255}
	Std  = [3]float64{1. / 255, 1. / 255, 1. / 255}
)

// Tensor is a weight or a running statistic: row-major values under torchvision's name.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// Load reads the network from an npm archive or a folder: 267 tensors, the 25,557,032 parameters and the running statistics, in the order of the
// network. A tensor that is missing, surplus or of an unexpected shape is an error that names it. It needs about 200 MB of memory while it works, 300
// MB from an archive.
func Load(ctx context.Context, at string) ([]Tensor, error) {
	src, err := open(ctx, at)
	if err != nil {
		return nil, err
	}
	all, err := readAllTensors(ctx, src)
	if err != nil {
		return nil, err
	}
	n := network{all: all}
	for _, p := range pairs() {
		n.pair(p)
	}
	n.classifier()
	if n.err != nil {
		return nil, fmt.Errorf("tfjs: %s: %w\nhint: use Keras' ResNet50, as in npm's %s", src.where(manifestFile), n.err, Package)
	}
	if len(all) > 0 {
		var names []string
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
		return nil, fmt.Errorf(
			"tfjs: %s: %d tensors do not belong to a ResNet-50: %s",
			src.where(manifestFile),
			len(names),
			strings.Join(names[:min(4, len(names))], ", "),
		)
	}
	return n.out, nil
}

// network collects tensors. After the first error it does nothing.
type network struct {
	all map[string]raw // tensors not used yet
	out []Tensor
	err error
}

// take removes a tensor from all. A size of 0 in shape matches any size.
func (n *network) take(name string, shape ...int) raw {
	t, ok := n.all[name]
	delete(n.all, name)
	if n.err != nil {
		return raw{}
	}
	if !ok {
		n.err = fmt.Errorf("tensor %q is missing", name)
		return raw{}
	}
	fits := len(t.shape) == len(shape)
	for i := range t.shape {
		fits = fits && (shape[i] == 0 || shape[i] == t.shape[i])
	}
	if !fits {
		n.err = fmt.Errorf("tensor %q is %v, want %s", name, t.shape, strings.ReplaceAll(fmt.Sprint(shape), "0", "?"))
		return raw{}
	}
	return t
}

func (n *network) put(name string, data []float32, shape ...int) {
	n.out = append(n.out, Tensor{name, shape, data})
}

func (n *network) pair(p pair) {
	k := n.take(p.kerasConv+"/kernel", p.kernel, p.kernel, 0, 0)
	if n.err != nil {
		return
	}
	in, out := k.shape[2], k.shape[3]
	bias := n.take(p.kerasConv+"/bias", out)
	gamma, beta := n.take(p.kerasNorm+"/gamma", out), n.take(p.kerasNorm+"/beta", out)
	mean, variance := n.take(p.kerasNorm+"/moving_mean", out), n.take(p.kerasNorm+"/moving_variance", out)
	if n.err != nil {
		return
	}
	for c, v := range variance.data {
		if v < 0 {
			n.err = fmt.Errorf("tensor %q: the variance of channel %d is %g", p.kerasNorm+"/moving_variance", c, v)
			return
		}
	}
	for c := range mean.data {
		mean.data[c] -= bias.data[c]
	}
	if p.conv == "conv1" && in != 3 {
		n.err = fmt.Errorf("tensor %q has %d input channels, want 3", p.kerasConv+"/kernel", in)
		return
	}
	n.put(p.conv+".weight", oihw(k, p.conv == "conv1"), out, in, p.kernel, p.kernel)
	n.put(p.norm+".weight", gamma.data, out)
	n.put(p.norm+".bias", beta.data, out)
	n.put(p.norm+".running_mean", mean.data, out)
	n.put(p.norm+".running_var", variance.data, out)
}

// oihw transposes a kernel [height width in out] to [out in height width]; reverse reverses the order of its input channels.
func oihw(k raw, reverse bool) []float32 {
	area, in, out := k.shape[0]*k.shape[1], k.shape[2], k.shape[3]
	v := make([]float32, len(k.data))
	for a := range area {
		for i := range in {
			from := k.data[(a*in+i)*out:][:out]
			to := i
			if reverse {
				to = in - 1 - i
			}
			for o, x := range from {
				v[(o*in+to)*area+a] = x
			}
		}
	}
	return v
}

func (n *network) classifier() {
	w := n.take("fc1000/kernel", 0, 0)
	if n.err != nil {
		return
	}
	in, out := w.shape[0], w.shape[1]
	bias := n.take("fc1000/bias", out)
	if n.err != nil {
		return
	}
	n.put("fc.weight", oihw(raw{[]int{1, 1, in, out}, w.data}, false), out, in)
	n.put("fc.bias", bias.data, out)
}
