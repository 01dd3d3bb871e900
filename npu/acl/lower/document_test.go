package lower_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

var update = flag.Bool("update", false, "rewrite docs/ascend-kinds.md and testdata; look at the difference before you commit it")

// golden compares text with a file, or writes it with -update.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, []byte(text)) {
		t.Errorf("%s is not up to date\nhint: go generate ./npu/acl/lower, and look at the difference", file)
	}
}

// sample is an op as a network has it.
type sample struct {
	what string
	op   npu.Op
}

func d(t npu.DType, shape ...int) npu.Desc { return npu.D(t, shape...) }
func f(shape ...int) npu.Desc              { return npu.D(npu.F32, shape...) }
func h(shape ...int) npu.Desc              { return npu.D(npu.BF16, shape...) }
func i(shape ...int) npu.Desc              { return npu.D(npu.I32, shape...) }

func op(kind string, a npu.Attrs, in []npu.Desc, out ...npu.Desc) npu.Op {
	return npu.Op{Kind: kind, Attrs: a, In: in, Out: out}
}

type list = []npu.Desc

// samples has at least one op for every kind.
func samples() []sample {
	conv := npu.Attrs{"stride": []int{2, 2}, "pad": []int{1, 1, 1, 1}, "dilation": []int{1, 1}, "groups": 1}
	with := func(a npu.Attrs, kv ...any) npu.Attrs {
		a = a.Clone()
		for j := 0; j < len(kv); j += 2 {
			a[kv[j].(string)] = kv[j+1]
		}
		return a
	}
	x, y, w := h(8, 64, 56, 56), h(8, 128, 28, 28), h(128, 64, 3, 3)
	c := f(64)
	bn := npu.Attrs{"eps": 1e-5, "relu": true, "add": true}
	pool := npu.Attrs{"kernel": []int{3, 3}, "stride": []int{2, 2}, "pad": []int{1, 1, 1, 1}}
	q, k, lse := h(2, 1024, 32, 128), h(2, 1024, 8, 128), f(2, 32, 1024)
	att := npu.Attrs{"scale": 0.088, "causal": true}
	rows, one := f(2048), f()
	rope := npu.Attrs{"theta": 1e4, "pairs": "half"}
	ce := npu.Attrs{"smoothing": 0.1, "ignore_index": -100}
	tok, tab := h(2048, 4096), h(32000, 4096)
	v := f(1 << 20)
	hy, two := f(8), d(npu.F64, 2)
	return []sample{
		{"", op(npu.Conv2D, conv, list{x, w}, y)},
		{"bias, relu", op(npu.Conv2D, with(conv, "bias", true, "relu", true), list{x, w, f(128)}, y)},
		{"", op(npu.Conv2DBwdData, with(conv, "x_shape", []int{8, 64, 56, 56}), list{y, w}, x)},
		{"bias", op(npu.Conv2DBwdWeights, with(conv, "w_shape", []int{128, 64, 3, 3}, "bias", true), list{x, y}, f(128, 64, 3, 3), f(128))},
		{"2 groups", op(npu.Conv2DBwdWeights, with(conv, "w_shape", []int{128, 32, 3, 3}, "groups", 2), list{x, y}, f(128, 32, 3, 3))},
		{"", op(npu.MatMul, npu.Attrs{"tb": true}, list{tok, h(4096, 4096)}, tok)},
		{"bias", op(npu.MatMul, npu.Attrs{"tb": true, "bias": true}, list{h(8, 2048), h(1000, 2048), f(1000)}, h(8, 1000))},
		{"gradient of weights", op(npu.MatMul, npu.Attrs{"ta": true, "out": "f32"}, list{tok, tok}, f(4096, 4096))},
		{"batched", op(npu.MatMul, npu.Attrs{}, list{h(2, 8, 64, 32), h(2, 8, 32, 16)}, h(2, 8, 64, 16))},
		{"relu, add", op(npu.BatchNorm, with(bn, "momentum", 0.1), list{x, c, c, c, c, x}, x, c, c, c, c)},
		{"relu, add", op(npu.BatchNormInfer, bn, list{x, c, c, c, c, x}, x)},
		{"relu, add, sum", op(npu.BatchNormBwd, with(bn, "sum", true), list{x, x, c, c, c, c, x, x}, x, c, c, x)},
		{"", op(npu.Relu, nil, list{x}, x)},
		{"", op(npu.ReluBwd, nil, list{x, x}, x)},
		{"silu", op(npu.Unary, npu.Attrs{"fn": "silu"}, list{x}, x)},
		{"exact", op(npu.Gelu, npu.Attrs{"approximate": "none"}, list{x}, x)},
		{"tanh", op(npu.GeluBwd, npu.Attrs{"approximate": "tanh"}, list{x, x}, x)},
		{"affine", op(npu.Unary, npu.Attrs{"fn": "affine", "alpha": 2.0, "beta": 1.0}, list{x}, x)},
		{"add, relu", op(npu.Binary, npu.Attrs{"fn": "add", "relu": true}, list{x, x}, x)},
		{"gt", op(npu.Binary, npu.Attrs{"fn": "gt"}, list{x, x}, x)},
		{"", op(npu.BroadcastTo, npu.Attrs{"shape": []int{8, 1000}}, list{h(1000)}, h(8, 1000))},
		{"sum", op(npu.Reduce, npu.Attrs{"fn": "sum", "axes": []int{0}, "out": "f32"}, list{h(8, 1000)}, f(1000))},
		{"", op(npu.MaxPool, pool, list{h(8, 64, 112, 112)}, x, i(8, 64, 56, 56))},
		{"", op(npu.MaxPoolBwd, with(pool, "x_shape", []int{8, 64, 112, 112}), list{x, i(8, 64, 56, 56)}, h(8, 64, 112, 112))},
		{"padded at the end", op(npu.MaxPool, with(pool, "pad", []int{0, 0, 1, 1}), list{h(8, 64, 112, 112)}, x, i(8, 64, 56, 56))},
		{"", op(npu.AvgPool, pool, list{h(8, 64, 112, 112)}, x)},
		{"", op(npu.AvgPoolBwd, with(pool, "x_shape", []int{8, 64, 112, 112}), list{x}, h(8, 64, 112, 112))},
		{"", op(npu.GlobalAvgPool, nil, list{h(8, 2048, 7, 7)}, h(8, 2048))},
		{"", op(npu.GlobalAvgPoolBwd, npu.Attrs{"x_shape": []int{8, 2048, 7, 7}}, list{h(8, 2048)}, h(8, 2048, 7, 7))},
		{"", op(npu.Softmax, nil, list{tok}, tok)},
		{"", op(npu.SoftmaxBwd, nil, list{tok, tok}, tok)},
		{"", op(npu.LogSoftmax, nil, list{tok}, tok)},
		{"", op(npu.LogSoftmaxBwd, nil, list{tok, tok}, tok)},
		{"smoothing", op(npu.CrossEntropy, ce, list{h(256, 1000), i(256)}, one, one, f(256))},
		{"weights", op(npu.OneHot, npu.Attrs{"classes": 3, "weights": []float64{1, 2, 0.5}}, list{i(256)}, f(256, 3), f(256))},
		{"", op(npu.SoftCrossEntropy, npu.Attrs{}, list{h(256, 1000), f(256, 1000)}, one, one, f(256))},
		{"", op(npu.SoftCrossEntropyBwd, npu.Attrs{}, list{h(256, 1000), f(256, 1000), f(256), one}, h(256, 1000))},
		{"weights of rows", op(npu.BCE, npu.Attrs{"weighted": true}, list{h(256, 1000), f(256, 1000), f(256)}, one, one)},
		{"weights of rows", op(npu.BCEBwd, npu.Attrs{"weighted": true}, list{h(256, 1000), f(256, 1000), f(256), one}, h(256, 1000))},
		{"", op(npu.MSE, npu.Attrs{}, list{h(256, 10), f(256, 10)}, one, one)},
		{"", op(npu.MSEBwd, npu.Attrs{}, list{h(256, 10), f(256, 10), one}, h(256, 10))},
		{"smoothing", op(npu.CrossEntropyBwd, ce, list{h(256, 1000), i(256), f(256), one}, h(256, 1000))},
		{"", op(npu.TopK, npu.Attrs{"k": 5}, list{h(256, 1000), i(256)}, one)},
		{"", op(npu.Dropout, npu.Attrs{"p": 0.1, "id": 3}, list{tok, d(npu.I64)}, tok)},
		{"rows", op(npu.Dropout, npu.Attrs{"p": 0.1, "id": 3, "rows": true}, list{x, d(npu.I64)}, x)},
		{"", op(npu.Transpose, npu.Attrs{"perm": []int{0, 2, 1, 3}}, list{q}, h(2, 32, 1024, 128))},
		{"", op(npu.Concat, npu.Attrs{"axis": 1}, list{x, x}, h(8, 128, 56, 56))},
		{"", op(npu.Slice, npu.Attrs{"begin": []int{0, 0, 1, 1}, "end": []int{8, 64, 55, 55}}, list{x}, h(8, 64, 54, 54))},
		{"", op(npu.Pad, npu.Attrs{"before": []int{0, 0, 1, 1}, "after": []int{0, 0, 1, 1}}, list{h(8, 64, 54, 54)}, x)},
		{"", op(npu.Reshape, nil, list{x}, h(8, 64*56*56))},
		{"", op(npu.Convert, nil, list{f(4096, 4096)}, h(4096, 4096))},
		{"", op(npu.Fill, npu.Attrs{"value": 1.0}, nil, f(64))},
		{"", op(npu.Embedding, nil, list{i(2, 1024), tab}, h(2, 1024, 4096))},
		{"add", op(npu.EmbeddingBwd, npu.Attrs{"rows": 32000, "add": true}, list{h(2, 1024, 4096), i(2, 1024), f(32000, 4096)}, f(32000, 4096))},
		{"", op(npu.RMSNorm, npu.Attrs{"eps": 1e-5}, list{tok, f(4096)}, tok, rows)},
		{"add", op(npu.RMSNorm, npu.Attrs{"eps": 1e-5, "add": true}, list{tok, f(4096), tok}, tok, rows, tok)},
		{"add", op(npu.RMSNormBwd, npu.Attrs{"eps": 1e-5, "add": true}, list{tok, tok, f(4096), rows, tok}, tok, f(4096))},
		{"", op(npu.LayerNorm, npu.Attrs{"eps": 1e-5}, list{tok, f(4096), f(4096)}, tok, rows, rows)},
		{"add", op(npu.LayerNorm, npu.Attrs{"eps": 1e-5, "add": true}, list{tok, f(4096), f(4096), tok}, tok, rows, rows, tok)},
		{"add", op(npu.LayerNormBwd, npu.Attrs{"eps": 1e-5, "add": true}, list{tok, tok, f(4096), rows, rows, tok}, tok, f(4096), f(4096))},
		{"", op(npu.Rope, rope, list{q}, q)},
		{"positions", op(npu.Rope, with(rope, "pos", true), list{q, i(2, 1024)}, q)},
		{"causal", op(npu.Attention, att, list{q, k, k}, q, lse)},
		{"keys, mask", op(npu.Attention, with(att, "keys", true, "mask", true), list{q, k, k, i(2, 1024), i(1, 1, 1024, 1024)}, q, lse)},
		{"causal, segments", op(npu.Attention, with(att, "seg", true), list{q, k, k, i(2, 1024)}, q, lse)},
		{"causal", op(npu.AttentionBwd, att, list{q, q, k, k, q, lse}, q, k, k)},
		{"", op(npu.AttentionCached, npu.Attrs{"scale": 0.088}, list{h(1, 1, 32, 128), f(1, 4096, 8, 128), f(1, 4096, 8, 128), i(1, 1)}, h(1, 1, 32, 128))},
		{"", op(npu.CacheWrite, nil, list{f(1, 4096, 8, 128), h(1, 1, 8, 128), i(1, 1)}, f(1, 4096, 8, 128))},
		{"", op(npu.SwiGLU, nil, list{tok, tok}, tok)},
		{"", op(npu.SwiGLUBwd, nil, list{tok, tok, tok}, tok, tok)},
		{"1 tile", op(npu.LinearCrossEntropy, npu.Attrs{}, list{tok, tab, i(2048)}, one, one, rows)},
		{"1 tile", op(npu.LinearCrossEntropyBwd, npu.Attrs{}, list{tok, tab, i(2048), rows, one}, tok, f(32000, 4096))},
		{"1 tile", op(npu.LinearCrossEntropyGrad, npu.Attrs{}, list{tok, tab, i(2048), one}, one, one, rows, tok, f(32000, 4096))},
		{"2 tiles", op(npu.LinearCrossEntropyGrad, npu.Attrs{}, list{h(4096, 4096), tab, i(4096), one}, one, one, f(4096), h(4096, 4096), f(32000, 4096))},
		{"momentum", op(npu.SGD, npu.Attrs{"has_momentum": true}, list{hy, v, v, v}, v, v)},
		{"", op(npu.AdamW, npu.Attrs{}, list{f(9), v, v, v, v}, v, v, v)},
		{"coupled", op(npu.AdamW, npu.Attrs{"coupled": true}, list{f(9), v, v, v, v}, v, v, v)},
		{"", op(npu.SumSq, nil, list{v}, two)},
		{"", op(npu.LARS, npu.Attrs{}, list{hy, v, v, v, two, two}, v, v)},
		{"", op(npu.LAMBMoments, npu.Attrs{}, list{f(9), v, v, v, v}, two, v, v)},
		{"", op(npu.LAMB, npu.Attrs{}, list{f(9), v, v, v, two}, v)},
		{"", op(npu.Scale, nil, list{f(1), v}, v)},
		{"", op(npu.EMA, nil, list{f(2), v, v}, v)},
	}
}

// exporting is c with all operators of the table.
func exporting(c lower.Caps) lower.Caps {
	c.Symbols = every
	return c
}

// inPlace binds the outputs of kinds that are always updated in place.
func inPlace(s sample) func(a, b lower.Ref) bool {
	pairs := map[string][][2]int{
		npu.BatchNorm: {{3, 3}, {4, 4}}, npu.SGD: {{0, 1}, {1, 3}}, npu.AdamW: {{0, 1}, {1, 3}, {2, 4}}, npu.LARS: {{0, 1}, {1, 3}}, npu.Scale: {{0, 1}},
		npu.EMA: {{0, 1}}, npu.LAMBMoments: {{1, 3}, {2, 4}}, npu.LAMB: {{0, 1}},
		npu.CacheWrite: {{0, 0}}, npu.EmbeddingBwd: {{0, 2}},
	}[s.op.Kind]
	return func(a, b lower.Ref) bool { return slices.Contains(pairs, [2]int{a.Index, b.Index}) }
}

// program lowers a sample for a machine.
func program(t *testing.T, s sample, c lower.Caps) *lower.Program {
	t.Helper()
	o, err := lower.Choose(s.op, c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := lower.Lower(o, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// as is an op with activations of another type.
func as(o npu.Op, t npu.DType) npu.Op {
	o = o.Clone()
	for _, l := range []list{o.In, o.Out} {
		for j := range l {
			if l[j].DType == npu.BF16 {
				l[j].DType = t
			}
		}
	}
	return o
}

// calls are the names of the operators that are called, and their number.
func calls(p *lower.Program, s sample) (names []string) {
	for _, c := range p.Calls {
		if c.Holds(inPlace(s)) && (c.When == nil || c.When.Not) { // numbers are seldom the special ones
			names = append(names, c.Op)
		}
	}
	return names
}

// TestPrograms pins the listings of all samples, on A2 with CANN 9.0, and the differences on 8.1.
func TestPrograms(t *testing.T) {
	var b strings.Builder
	seen := map[string]bool{}
	for _, s := range samples() {
		seen[s.op.Kind] = true
		p := program(t, s, exporting(version(9, 0, lower.A2).caps))
		fmt.Fprintf(&b, "# %s\n%s", title(s), p)
		if lower.Has(s.op.Kind, s.op.Attrs, version(8, 1, lower.A2).caps) {
			if old := program(t, s, version(8, 1, lower.A2).caps); old.String() != p.String() {
				fmt.Fprintf(&b, "## with CANN 8.1\n%s", old)
			}
		} else {
			b.WriteString("## not with CANN 8.1\n")
		}
		b.WriteString("\n")
	}
	for _, k := range lower.Kinds() {
		if !seen[k] {
			t.Errorf("%s has no sample", k)
		}
	}
	golden(t, "testdata/programs.txt", b.String())
}

func title(s sample) string {
	if s.what == "" {
		return s.op.Kind
	}
	return s.op.Kind + " (" + s.what + ")"
}

// TestDocument keeps docs/ascend-kinds.md up to date.
func TestDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(intro)
	b.WriteString("| kind | calls, bf16 activations, CANN 9.0 | bf16 | f32 | 8.1, bf16 |\n| --- | --- | --- | --- | --- |\n")
	new_, old := exporting(version(9, 0, lower.A2).caps), version(8, 1, lower.A2).caps
	for _, s := range samples() {
		names := calls(program(t, s, new_), s)
		full := s
		full.op = as(s.op, npu.F32)
		before := "–"
		if lower.Has(s.op.Kind, s.op.Attrs, old) {
			before = fmt.Sprint(len(calls(program(t, s, old), s)))
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %s |\n", title(s), short(names), len(names), len(calls(program(t, full, new_), full)), before)
	}
	b.WriteString("\n## What differs from the reference\n\n| kind | |\n| --- | --- |\n")
	for _, k := range lower.Kinds() {
		if n := lower.Note(k); n != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", k, n)
		}
	}
	b.WriteString(stepsOfModels(t))
	golden(t, "../../../docs/ascend-kinds.md", b.String())
}

const intro = `# Kinds on Ascend NPUs

<!-- Generated by go generate ./npu/acl/lower; do not edit. -->

Each kind of [npu/kinds.go](../npu/kinds.go) becomes one or several calls of aclnn, the operator library of CANN. [npu/acl/lower](../npu/acl/lower/doc.go)
does that; its testdata/programs.txt lists the calls below with all their arguments.

**Proven**: signatures, against headers (CANN 8.1.RC1, torch-npu wheels); numbers, against a fake CANN that computes on the host and refuses
what the operators' documentation and sources say they refuse. **Not proven**: anything on an NPU. ` + "`gotrain doctor --device`" + ` runs every kind
on one.

The columns with numbers are calls of operators, which is what the host has to enqueue. Names in the list stand in the order of the calls; ×n are n calls
in a row.

`

// short joins names, with a number for those that repeat.
func short(names []string) string {
	var l []string
	for j := 0; j < len(names); {
		n := 1
		for j+n < len(names) && names[j+n] == names[j] {
			n++
		}
		if l = append(l, names[j]); n > 1 {
			l[len(l)-1] += fmt.Sprintf(" ×%d", n)
		}
		j += n
	}
	return strings.Join(l, " · ")
}

// stepsOfModels counts the calls of training steps.
func stepsOfModels(t *testing.T) string {
	var b strings.Builder
	b.WriteString(`
## Calls of a training step

Forward and backward pass, without the optimizer, which adds the calls of its kind once per bucket of gradients (LARS: per tensor). *Temporaries* are what
the largest kind needs besides its operators' own workspaces.

| model | activations | CANN | kernels | calls | temporaries | most calls |
| --- | --- | --- | --- | --- | --- | --- |
`)
	row := func(model, acts string, v lower.Version, s step) {
		kinds := slices.SortedFunc(maps.Keys(s.byKind), func(x, y string) int { return 1000*(s.byKind[y]-s.byKind[x]) + strings.Compare(x, y) })
		var most []string
		for _, k := range kinds[:min(4, len(kinds))] {
			most = append(most, fmt.Sprintf("%s %d", k, s.byKind[k]))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %d MiB | %s |\n", model, acts, v, s.kernels, s.calls, s.scratch>>20, strings.Join(most, ", "))
	}
	for _, to := range []target{version(9, 0, lower.A2), version(8, 1, lower.A2)} {
		v := to.caps.Version
		row("ResNet50, batch 64", "f32", v, launches(t, resnet50(64), to, plan.Options{}))
		row("ResNet50, batch 64", "bf16", v, launches(t, resnet50(64), to, plan.Options{Compute: npu.BF16}))
		row("Llama 2 7B, 1×4096 tokens", "bf16", v, launches(t, llama7B(1, 4096), to, plan.Options{Compute: npu.BF16}))
		row("the same, recomputed", "bf16", v, launches(t, llama7B(1, 4096), to, plan.Options{Compute: npu.BF16, Recompute: true}))
	}
	return b.String()
}
