package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// Network adds a network to a builder and returns its logits [N K] for the fields of a batch. It is called once for each graph, and adds the same parameters
// each time. Errors stay in the builder.
type Network func(b *graph.Builder, in map[string]*graph.Node) *graph.Node

// Family is one kind of network.
type Family struct {
	// Open makes the network that a configuration describes; nil: the family has no outputs a sample, see Instead.
	Open func(config json.RawMessage) (Network, error)
	// Instead says how networks without Open are used, such as "it generates text: use gotrain generate".
	Instead string
	// Recipe says how recipes describe the family's networks; nil: they cannot.
	Recipe *Recipe
	// Adapt says how a parameter of initial weights with another shape becomes one of the network, such as learned positions for pictures of another size; it
	// returns nil for those that cannot. nil: shapes must be equal.
	Adapt func(param string, has, want npu.Shape) func(values []float32) []float32
	// Recognise guesses from the names of parameters which network they belong to, for messages; "": none of this family. nil: it cannot.
	Recognise func(params []string) string
}

// registry is filled in init functions.
var registry = struct {
	sync.RWMutex
	families map[string]Family
}{families: map[string]Family{}}

// ErrNoPredictions means that networks of a family do not give one row of outputs for a sample.
var ErrNoPredictions = errors.New("it does not predict classes")

// Register adds a family. It panics if the name is taken or if the family says neither how to open it nor what to use instead.
func Register(name string, f Family) {
	registry.Lock()
	defer registry.Unlock()
	if _, taken := registry.families[name]; taken || name == "" || f.Open == nil && f.Instead == "" {
		panic(fmt.Sprintf("models: family %q is registered twice, or without Open and Instead", name))
	}
	registry.families[name] = f
}

// Names lists the families of this program.
func Names() []string {
	registry.RLock()
	defer registry.RUnlock()
	return slices.Sorted(maps.Keys(registry.families))
}

// Find returns a family by its name.
func Find(name string) (Family, bool) {
	registry.RLock()
	defer registry.RUnlock()
	f, ok := registry.families[name]
	return f, ok
}

// Recognise guesses from the names of parameters which network they belong to; "" where no family knows them.
func Recognise(params []string) string {
	for _, name := range Names() {
		if f, _ := Find(name); f.Recognise != nil {
			if s := f.Recognise(params); s != "" {
				return s
			}
		}
	}
	return ""
}

// Open makes the network of a family.
func Open(name string, config json.RawMessage) (Network, error) {
	f, ok := Find(name)
	switch {
	case !ok:
		return nil, fmt.Errorf("models: this program has no family %q, only %s\nhint: import the package of the family for its side effect, such as _ %q",
			name, strings.Join(Names(), ", "), "github.com/gotrain/gotrain/graph/models/resnet")
	case f.Open == nil:
		return nil, fmt.Errorf("models: the network is a %s: %w\nhint: %s", name, ErrNoPredictions, f.Instead)
	}
	net, err := f.Open(config)
	if err != nil {
		return nil, fmt.Errorf("models: %s: %w", name, err)
	}
	return net, nil
}

// Config decodes the configuration of a family strictly: a key that the type lacks was written by another version, whose network may be another one.
func Config[T any](raw json.RawMessage) (T, error) {
	var c T
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("the configuration of the network: %w", err)
	}
	return c, nil
}

// OfImages makes Family.Open for networks that read the field "image": config decodes to a C, check names its faults, and build adds the network to a builder.
// name is what errors call the network, such as "a ResNet".
func OfImages[C any](
	name string, check func(C) (C, error), build func(b *graph.Builder, x *graph.Node, c C) *graph.Node,
) func(json.RawMessage) (Network, error) {
	return func(raw json.RawMessage) (Network, error) {
		c, err := Config[C](raw)
		if err == nil {
			_, err = check(c)
		}
		if err != nil {
			return nil, err
		}
		return func(b *graph.Builder, in map[string]*graph.Node) *graph.Node {
			x, ok := in["image"]
			if !ok {
				b.Failf("%s reads the field %q, which the samples lack", name, "image")
				return nil
			}
			return build(b, x, c)
		}, nil
	}
}
