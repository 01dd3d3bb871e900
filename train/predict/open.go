package predict

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data/images"
)

// input is a field that the network reads.
type input struct {
	checkpoint.Input
	dtype npu.DType
	bytes int // of one row
}

// String is "image f32[3 224 224]".
func (in input) String() string { return fmt.Sprintf("%s %s%v", in.Name, in.DType, in.Shape) }

// Open opens the network of a checkpoint, of the newest good checkpoint in a folder of several, or in that of a run. path may also name weights in
// safetensors; then the options must describe the network. Every file of a checkpoint is verified first.
func Open(path string, opts ...Option) (*Model, error) {
	var o options
	for _, f := range opts {
		f(&o)
	}
	if o.batch == 0 {
		o.batch = 32
	}
	if o.batch < 0 || o.workers < 0 || o.threads < 0 {
		return nil, fmt.Errorf("predict: a batch of %d, %d workers, %d threads: none may be negative", o.batch, o.workers, o.threads)
	}
	switch o.conv {
	case "":
		o.conv = train.AutoConv
	case train.AutoConv, train.DirectConv, train.WinogradConv:
	default:
		return nil, fmt.Errorf("predict: unknown algorithm of convolutions %q\nhint: use %s, %s or %s", o.conv, train.AutoConv, train.DirectConv, train.WinogradConv)
	}
	m := &Model{path: path, network: checkpoint.Network{}}
	if err := m.find(); err != nil {
		return nil, err
	}
	if err := m.describe(&o); err != nil {
		return nil, err
	}
	w, err := train.OpenWeights(m.path)
	if err != nil {
		return nil, fmt.Errorf("predict: %w", err)
	}
	defer w.Close()
	if err := m.start(w, &o); err != nil {
		return nil, errors.Join(err, m.release())
	}
	return m, nil
}

// find resolves the path to one checkpoint, verifies it, and reads what it says of its network.
func (m *Model) find() error {
	path, err := filepath.Abs(m.path)
	if err != nil {
		return err
	}
	m.path, _ = checkpoint.Resolve(path)
	st, err := os.Stat(m.path)
	if err != nil {
		return fmt.Errorf("predict: no checkpoint: %w", err)
	}
	if !st.IsDir() {
		return nil // weights
	}
	c, _, err := checkpoint.OpenAt(context.Background(), checkpoint.OS{}, m.path)
	if errors.Is(err, checkpoint.ErrNone) {
		if w, other := train.OpenWeights(m.path); other == nil { // a folder of weights
			return w.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	defer c.Close()
	m.path, m.state, m.described = c.Path, c.State, c.State.Network != nil
	if m.described {
		m.network = *c.State.Network
	}
	m.classes = c.State.Classes
	return nil
}

// describe merges what the checkpoint says with the options, and finds the network.
func (m *Model) describe(o *options) error {
	if o.network != nil {
		m.network, m.described = *o.network, true
	}
	if o.classes != nil {
		m.classes = o.classes
	}
	n := &m.network
	switch {
	case o.model != nil:
		m.build = func(b *graph.Builder, in map[string]*graph.Node) *graph.Node { return o.model(b, in).Logits }
	case !m.described:
		return fmt.Errorf("predict: %s: %w\nhint: pass predict.WithNetwork, or predict.WithModel with the function that trained it, and predict.WithPictures; "+
			"gotrain predict takes them from the recipe of a run", m.path, ErrNotDescribed)
	case n.Family == "":
		return fmt.Errorf("predict: %s holds the weights of a program's own model\nhint: pass the function that trained it, with predict.WithModel", m.path)
	default:
		net, err := models.Open(n.Family, n.Config)
		if err != nil {
			return fmt.Errorf("predict: %s: %w", m.path, err)
		}
		m.build = net
	}
	if o.pictures == nil && n.Prepare != nil {
		p, err := images.ParsePreparation(n.Prepare)
		if err != nil {
			return fmt.Errorf("predict: %s: %w", m.path, err)
		}
		o.pictures = &p
	}
	if len(n.Inputs) == 0 && o.pictures != nil { // weights that come without a checkpoint
		n.Inputs = []checkpoint.Input{{Name: "image", DType: "f32", Shape: []int{o.pictures.Channels, o.pictures.Height, o.pictures.Width}}}
	}
	return m.readInputs(o)
}

// readInputs finds what a sample consists of.
func (m *Model) readInputs(o *options) error {
	for _, in := range m.network.Inputs {
		t, err := npu.ParseDType(in.DType)
		if err != nil {
			return fmt.Errorf("predict: %s: field %s: %w", m.path, in.Name, err)
		}
		elems := 1
		for _, d := range in.Shape {
			if d < 1 || elems > 1<<28/d {
				return fmt.Errorf("predict: %s: the field %s has the shape %v", m.path, in.Name, in.Shape)
			}
			elems *= d
		}
		f := input{in, t, elems * t.Size()}
		if m.all = append(m.all, f); !in.Target {
			m.inputs = append(m.inputs, f)
		}
	}
	if len(m.inputs) == 0 {
		return fmt.Errorf("predict: %s does not say what its network reads\nhint: pass predict.WithNetwork with Inputs, or predict.WithPictures", m.path)
	}
	if o.pictures == nil {
		return nil
	}
	if o.pixels > 0 {
		o.pictures.MaxPixels = o.pixels
	}
	var err error
	if m.prep, err = images.NewPreparer(*o.pictures); err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	if in := m.inputs[0]; len(m.inputs) != 1 || in.dtype != npu.F32 || 4*m.prep.Elems() != in.bytes {
		return fmt.Errorf("predict: pictures become f32[%d %d %d], but the network reads %v", o.pictures.Channels, o.pictures.Height, o.pictures.Width, m.inputs)
	}
	return nil
}

// ErrNotDescribed means that a checkpoint does not say what its network is: a version of gotrain before there were descriptions wrote it.
var ErrNotDescribed = errors.New("the checkpoint does not describe its network")
