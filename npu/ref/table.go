package ref

import (
	"fmt"
	"maps"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

// body computes the outputs of a checked op.
type body func(c *call) error

// bodies is the table of all kinds; init fills it from the tables of the families, so that each kind is complete in one file, and Register adds others.
var bodies = map[string]body{}

func init() {
	for _, family := range []map[string]body{
		convKinds, matmulKinds, batchNormKinds, elementKinds, reduceKinds, poolKinds, softmaxKinds,
		crossEntropyKinds, lossKinds, dropoutKinds, moveKinds, flatKinds,
		embeddingKinds, rmsNormKinds, layerNormKinds, geluKinds, ropeKinds, attentionKinds, cacheKinds, swiGLUKinds, linearCEKinds,
	} {
		maps.Copy(bodies, family)
	}
}

// Has reports whether the kind is known; the attributes matter only where they select a function (unary, binary, reduce).
func Has(name string, attrs npu.Attrs) bool {
	k, err := kind.Lookup(name)
	return err == nil && bodies[name] != nil && k.HasFn(attrs)
}

// Check checks that the op is well formed, as package kind knows it, and that there is an implementation of it here. Layouts are ignored. Trailing outputs
// may be absent. The error names the kind and the shapes.
func Check(op npu.Op) error {
	if err := kind.Check(op); err != nil {
		return fmt.Errorf("ref: %w", err)
	}
	if bodies[op.Kind] == nil {
		return fmt.Errorf("ref: no kernel for kind %q: %s\nhint: register one with ref.Register", op.Kind, op)
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
	if err := bodies[op.Kind](c); err != nil {
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
