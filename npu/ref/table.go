package ref

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

// spec is the implementation of one kind.
type spec struct {
	check func(c *checker) // shape and dtype rule
	run   func(c *call) error
}

// kinds is the table of all kinds; init fills it from the tables of the families, so that each kind is complete in one file.
var kinds = map[string]spec{}

func init() {
	for _, family := range []map[string]spec{
		convKinds, matmulKinds, batchNormKinds, elementKinds, reduceKinds, poolKinds, softmaxKinds,
		crossEntropyKinds, dropoutKinds, moveKinds, flatKinds,
		embeddingKinds, rmsNormKinds, ropeKinds, attentionKinds, cacheKinds, swiGLUKinds, linearCEKinds,
	} {
		for k, s := range family {
			kinds[k] = s
		}
	}
}

// Has reports whether the kind is known; the attributes matter only where they select a function (unary, binary, reduce).
func Has(kind string, attrs npu.Attrs) bool {
	if _, ok := kinds[kind]; !ok {
		return false
	}
	switch kind {
	case npu.Unary:
		_, ok := unaryFns[attrs.Str("fn")]
		return ok
	case npu.Binary:
		_, ok := binaryFns[attrs.Str("fn")]
		return ok
	case npu.Reduce:
		return reduceFn(attrs.Str("fn"))
	}
	return true
}

// Check checks that the op is well formed: a known kind, consistent attributes, and the number, shapes and dtypes of its inputs and outputs. Layouts are
// ignored. Trailing outputs may be absent. The error names the kind and the shapes.
func Check(op npu.Op) error {
	s, ok := kinds[op.Kind]
	if !ok {
		return fmt.Errorf("ref: unknown op kind %q", op.Kind)
	}
	c := &checker{op: op}
	for i, d := range append(append([]npu.Desc{}, op.In...), op.Out...) {
		for _, n := range d.Shape {
			if n < 0 {
				return fmt.Errorf("ref: %s: argument %d has a negative dimension: %s", op.Kind, i, op)
			}
		}
		if d.DType.Size() == 0 {
			return fmt.Errorf("ref: %s: argument %d has no dtype: %s", op.Kind, i, op)
		}
	}
	if s.check(c); c.err != nil {
		return fmt.Errorf("ref: %s: %w: %s", op.Kind, c.err, op)
	}
	return nil
}

// Run executes one op on host memory: args are its inputs, then its outputs, plain and little-endian, each at least as long as its
// desc requires. An output may be nil, and may share memory with an input (all inputs are read before anything is written) unless the op only moves
// elements, as transpose and concat do.
func Run(op npu.Op, args [][]byte) error {
	if err := Check(op); err != nil {
		return err
	}
	if err := checkArgs(op, args); err != nil {
		return err
	}
	return run(op, args, 0)
}

// run executes a checked op with at most threads goroutines (0: one per processor).
func run(op npu.Op, args [][]byte, threads int) error {
	c := &call{op: op, args: args, threads: threads, outs: make([][]float64, len(op.Out))}
	defer c.release()
	if err := kinds[op.Kind].run(c); err != nil {
		return fmt.Errorf("ref: %s: %w", op.Kind, err)
	}
	c.store()
	return nil
}

func checkArgs(op npu.Op, args [][]byte) error {
	if len(args) != len(op.In)+len(op.Out) {
		return fmt.Errorf("ref: %s: %d arguments for %d inputs and %d outputs", op.Kind, len(args), len(op.In), len(op.Out))
	}
	for i, a := range args {
		d := argDesc(op, i)
		if d.Layout != npu.Plain {
			return fmt.Errorf("ref: %s: argument %d is %s, but only the plain layout is supported", op.Kind, i, d)
		}
		if a == nil && i >= len(op.In) {
			continue
		}
		if int64(len(a)) < d.PlainBytes() {
			return fmt.Errorf("ref: %s: argument %d, %s, has %d bytes of %d", op.Kind, i, d, len(a), d.PlainBytes())
		}
	}
	return nil
}

func argDesc(op npu.Op, i int) npu.Desc {
	if i < len(op.In) {
		return op.In[i]
	}
	return op.Out[i-len(op.In)]
}
