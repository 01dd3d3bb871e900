package graph

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/gotrain/gotrain/npu"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Node is a value in a graph under construction: Gorgonia's own node, so that its ops and those of the Builder mix.
type Node = gorgonia.Node

// mu is held whenever Gorgonia's code runs: building and Grad touch process-wide nodes and pools of Gorgonia, so two builders
// on two goroutines would race.
var mu sync.Mutex

// Names of the inputs that the Builder adds. The caller of the program must set them.
const (
	// LossScaleInput is the f32 scalar by which the loss is multiplied before it is differentiated: the seed of the backward pass.
	LossScaleInput = "loss_scale"
	// SeedInput is the i64 scalar from which Dropout and DropPath draw; it exists where one of them is used in training.
	SeedInput = "seed"
)

// Builder builds one model for one batch shape, either for training or for evaluation. Errors are sticky: the first one is kept and names
// the layer and the line of the caller; whatever is called after it does nothing and returns a placeholder that is safe to hand on.
// So a model of any depth is written without an error check, and Err is asked once. A Builder is used by one goroutine.
type Builder struct {
	g           *gorgonia.ExprGraph
	training    bool
	unreachedOK bool
	onParam     []func(*Param) error
	indexed     []*call // those with inputs that are indices
	warn        func(string)
	warned      map[string]bool

	err         error
	placeholder *Node
	path        string // scopes joined by dots
	block       string // path of the block under construction
	raw         bool   // inside Raw
	seq         uint64
	dropouts    int

	taken   map[string]bool // names of inputs, parameters, states
	leaves  map[*Node]*leaf
	inputs  []*leaf
	params  []*Param
	states  []*State
	outputs []output

	loss, scaled *Node
	grad         gradPass
}

// leaf is what the Builder knows of a node that no op makes.
type leaf struct {
	name  string
	desc  npu.Desc
	kind  leafKind
	param *Param
	value float64 // of a constant
}

type leafKind uint8

const (
	leafInput leafKind = iota
	leafParam
	leafState
	leafConst
)

type output struct {
	name string
	node *Node
}

// Param is a tensor that training changes.
type Param struct {
	Name    string
	Shape   npu.Shape
	Init    Init
	NoDecay bool   // no weight decay: biases, scales of norms
	Group   string // which group of the trainer (train.ParamGroup); "" is none
	Frozen  bool   // no gradient is built
	Node    *Node
}

// State is a tensor that the program itself updates in place, such as a running mean. It is saved in checkpoints.
type State struct {
	Name  string
	Shape npu.Shape
	Value float32 // initial value
	Node  *Node
}

// Option changes how a Builder works.
type Option func(*Builder)

// ForEval makes the Builder build for evaluation: batch norm uses running statistics, dropout is the identity, there is no backward pass.
func ForEval() Option { return func(b *Builder) { b.training = false } }

// AllowUnreached makes a parameter that the loss does not depend on no error: it gets no gradient.
func AllowUnreached() Option { return func(b *Builder) { b.unreachedOK = true } }

// OnParam calls f with each parameter as it is declared, before anything depends on it. f may set NoDecay, Group and Frozen; its error ends the building.
func OnParam(f func(*Param) error) Option {
	return func(b *Builder) { b.onParam = append(b.onParam, f) }
}

// WarnTo sets where warnings go. The default is slog.
func WarnTo(f func(string)) Option { return func(b *Builder) { b.warn = f } }

// Salt changes the numbers that keep nodes apart in Gorgonia's 32-bit hash. It is needed only when an error says so.
func Salt(n uint32) Option { return func(b *Builder) { b.seq = uint64(n) << 32 } }

// New starts a graph, for training unless ForEval is given.
func New(opts ...Option) *Builder {
	b := &Builder{
		training: true, warn: func(s string) { slog.Warn(s) }, warned: map[string]bool{},
		taken: map[string]bool{}, leaves: map[*Node]*leaf{},
	}
	for _, o := range opts {
		o(b)
	}
	mu.Lock()
	defer mu.Unlock()
	b.g = gorgonia.NewGraph()
	// Rank 8, so that a model that indexes a shape after an error does not go out of range.
	b.placeholder = gorgonia.NewTensor(b.g, tensor.Float32, 8, gorgonia.WithShape(1, 1, 1, 1, 1, 1, 1, 1), gorgonia.WithName("\x00placeholder"))
	return b
}

// Training says whether the graph is built for training.
func (b *Builder) Training() bool { return b.training }

// Graph is the Gorgonia graph, for raw ops. Wrap them in Raw.
func (b *Builder) Graph() *gorgonia.ExprGraph { return b.g }

// Err is the first error.
func (b *Builder) Err() error { return b.err }

// Failf records an error of the caller's own, such as a layer's. Only the first error of a Builder is kept.
func (b *Builder) Failf(format string, args ...any) {
	if b.err != nil {
		return
	}
	place := ""
	if b.path != "" {
		place = b.path + ": "
	}
	if at := callSite(); at != "" {
		place = at + ": " + place
	}
	b.err = fmt.Errorf("graph: "+strings.ReplaceAll(place, "%", "%%")+format, args...)
}

// outside fails where a method that builds is called from within Raw, which holds the lock: better than a deadlock.
func (b *Builder) outside() bool {
	if b.raw {
		b.Failf("a method of the Builder was called within Raw\nhint: call only Gorgonia's own functions there")
	}
	return b.err == nil
}

// In builds with a name scope around: parameters made by f are called name.…, and calls carry the path.
func (b *Builder) In(name string, f func()) {
	defer b.Scope(name)()
	f()
}

// Scope enters a name scope and returns the function that leaves it: defer b.Scope("layer1")().
func (b *Builder) Scope(name string) (leave func()) {
	old := b.path
	if !validName(name) {
		b.Failf("scope name %q: want letters, digits, _, - and . between them", name)
		return func() {}
	}
	b.path = join(old, name)
	return func() { b.path = old }
}

// Block is In for a part of the network that repeats, such as a layer of a transformer. Options.Recompute keeps only what leaves a block and computes
// the rest again in the backward pass. Blocks do not nest.
func (b *Builder) Block(name string, f func()) {
	if b.block != "" {
		b.Failf("block %q inside block %q: blocks do not nest", name, b.block)
	}
	b.In(name, func() {
		b.block = b.path
		f()
	})
	b.block = ""
}

// Path is the current scope.
func (b *Builder) Path() string { return b.path }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func validName(s string) bool {
	for i, r := range s {
		word := r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !word && (r != '.' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return s != ""
}

// Desc is dtype and shape of a node; after an error that of the placeholder, which has rank 8, so that a model may index the shape.
func (b *Builder) Desc(n *Node) npu.Desc {
	if b.err == nil && n == nil {
		b.Failf("the shape of a %w was requested\nhint: %s", ErrNil, nilHint)
	}
	if b.err == nil {
		d, err := descOf(n)
		if err == nil {
			return d
		}
		b.Failf("%w", err)
	}
	return npu.D(npu.F32, 1, 1, 1, 1, 1, 1, 1, 1)
}

// Dim is the extent of axis i, counted from the end where negative; 1 after an error.
func (b *Builder) Dim(n *Node, i int) int {
	s := b.Desc(n).Shape
	if i < 0 {
		i += len(s)
	}
	if i < 0 || i >= len(s) {
		b.Failf("axis %d of a tensor of shape %v", i, s)
		return 1
	}
	return s[i]
}

// warnf hands a warning to the sink, once for each text.
func (b *Builder) warnf(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if !b.warned[s] {
		b.warned[s] = true
		b.warn(s)
	}
}
