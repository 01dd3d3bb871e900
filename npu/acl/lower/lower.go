package lower

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

// rule is the translation of one kind.
type rule struct {
	// lower appends the calls. It may fail the builder, or panic on a shape that no op of the kind has.
	lower func(b *builder)
	needs []string // operators without which the kind cannot be lowered
	// has reports whether the kind is there with these attributes; nil: always.
	has func(a npu.Attrs, c Caps) bool
	// choose changes the layouts of the op, all plain before; nil: plain for all.
	choose func(op *npu.Op, c Caps)
	any    bool // layouts stay as they are
}

// rules is the table of all kinds; init fills it from the tables of the families.
var rules = map[string]rule{}

func init() {
	for _, family := range []map[string]rule{
		convRules, normRules, poolRules, matmulRules, elementRules, reduceRules, softmaxRules, lossRules, pairedRules, linearCERules, moveRules,
		embeddingRules, rmsNormRules, layerNormRules, geluRules, ropeRules, attentionRules, cacheRules, swiGLURules, dropoutRules, optimizerRules, flatRules,
	} {
		maps.Copy(rules, family)
	}
}

// Kinds lists the kinds that have a translation, sorted.
func Kinds() []string { return slices.Sorted(maps.Keys(rules)) }

// Has reports whether the kind with these attributes can be lowered. Shapes and element types do not matter.
func Has(kind string, attrs npu.Attrs, c Caps) bool {
	r, ok := rules[kind]
	return ok && !slices.ContainsFunc(r.needs, func(op string) bool { return !c.Has(op) }) && (r.has == nil || r.has(attrs, c))
}

// there returns an error if the op cannot be lowered, whatever its shapes are.
func there(op npu.Op, c Caps) error {
	r, ok := rules[op.Kind]
	if !ok {
		return fmt.Errorf("acl: no kernel for kind %q: %s", op.Kind, op)
	}
	if Has(op.Kind, op.Attrs, c) {
		return nil
	}
	for _, need := range r.needs {
		if !c.Has(need) {
			return fmt.Errorf("acl: %s needs aclnn%s, which CANN %v does not have: %s\nhint: install a version of CANN that has it", op.Kind, need, c.Version, op)
		}
	}
	return fmt.Errorf("acl: %s: no operator for these attributes in CANN %v: %s\nhint: %s", op.Kind, c.Version, op, hint(op.Kind))
}

func hint(kind string) string {
	if kind == npu.Dropout {
		return "dropout needs CANN 9.0 or later"
	}
	return "see docs/ascend-kinds.md"
}

// Choose returns the op with the layouts that Lower expects: plain, but for the tokens of this package.
func Choose(op npu.Op, c Caps) (npu.Op, error) {
	if err := there(op, c); err != nil {
		return npu.Op{}, err
	}
	if err := npu.CheckAlgorithm(op); err != nil {
		return npu.Op{}, fmt.Errorf("acl: %w", err)
	}
	r := rules[op.Kind]
	op = op.Clone()
	for _, list := range [][]npu.Desc{op.In, op.Out} {
		for i := range list {
			if !r.any || list[i].Layout == npu.Any {
				list[i].Layout = npu.Plain
			}
		}
	}
	if r.choose != nil {
		r.choose(&op, c)
	}
	return op, nil
}

// Bytes is the size of a tensor in device memory.
func Bytes(d npu.Desc) (int64, error) {
	if d.DType.Size() == 0 {
		return 0, fmt.Errorf("acl: size of %s: no element type", d)
	}
	switch d.Layout {
	case npu.Plain:
		return d.PlainBytes(), nil
	case Var:
		return d.PlainBytes(), nil
	case Lanes:
		return 2 * lanes * d.PlainBytes(), nil
	}
	return 0, fmt.Errorf("acl: size of %s: unknown layout", d)
}

// Lower translates an op whose layouts are those that Choose returns.
func Lower(op npu.Op, c Caps) (p *Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("acl: %s: %v: %s", op.Kind, r, op)
		}
	}()
	want, err := Choose(op, c)
	if err == nil {
		err = kind.Check(op)
	}
	if err != nil {
		return nil, err
	}
	if want.String() != op.String() {
		return nil, fmt.Errorf("acl: %s: layouts are not those that Choose returns: %s, not %s", op.Kind, op, want)
	}
	r := rules[op.Kind]
	b := &builder{op: op, caps: c, keys: map[string]int{}}
	b.p.Kind = op.Kind
	b.p.Spare = make([]TempMem, len(op.Out))
	for i, d := range op.Out {
		if kind.Of(op.Kind).MayBeNil(op.Attrs, i) {
			n, err := Bytes(d)
			if err != nil {
				return nil, err
			}
			b.p.Spare[i].Bytes = align(n)
		}
	}
	r.lower(b)
	if b.err != nil {
		return nil, fmt.Errorf("acl: %s: %w: %s", op.Kind, b.err, op)
	}
	b.p.place()
	return &b.p, nil
}
