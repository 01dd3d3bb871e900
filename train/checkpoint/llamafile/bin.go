package llamafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

const (
	binMagic   = 0x616b3432 // "ak42", of versions 1 and up
	binHeader0 = 7 * 4
	binHeader  = 256
	binTheta   = 10000 // llama2.c always rotates with this
	binEps     = 1e-5  // and always normalises with this
)

// binOrder is the order of the tensors in the file: one tensor of all layers, then the next of all layers. It is split because version 0 stores the
// norms first, newer versions do not.
var binOrder = map[int][]string{
	0: {embedName, "input_layernorm.weight", "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight",
		"post_attention_layernorm.weight", "mlp.gate_proj.weight", "mlp.down_proj.weight", "mlp.up_proj.weight", "model.norm.weight", tables, headName},
	1: {"input_layernorm.weight", "post_attention_layernorm.weight", "model.norm.weight", embedName, "self_attn.q_proj.weight", "self_attn.k_proj.weight",
		"self_attn.v_proj.weight", "self_attn.o_proj.weight", "mlp.gate_proj.weight", "mlp.down_proj.weight", "mlp.up_proj.weight", headName},
}

// tables is the name of the rotary cosines and sines, which version 0 stores and its reader skips.
const tables = "rotary tables"

// binFile is a parsed header.
type binFile struct {
	version int
	cfg     llama.Config
	group   int // of version 2
	start   int // of the data
}

// openBin opens a llama2.c file.
func openBin(path string) (Model, error) {
	raw, unmap, err := safetensors.Map(path)
	if err != nil {
		return nil, fmt.Errorf("llamafile: open %s: %w", path, err)
	}
	m, err := fromBin(raw)
	if pickle := safetensors.CheckPickle(raw, path); err != nil && pickle != nil { // pytorch_model.bin
		err = fmt.Errorf("%w: %w", ErrNotLlama, pickle)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("llamafile: %s: %w", path, err), unmap())
	}
	m.close = unmap
	return m, nil
}

func fromBin(raw []byte) (*model, error) {
	h, err := parseBin(raw)
	if err != nil {
		return nil, err
	}
	if err := h.checkSize(len(raw)); err != nil { // before listing all tensors of all layers, of which a 28-byte header can claim millions
		return nil, err
	}
	m := &model{cfg: h.cfg, format: fmt.Sprintf("llama2c v%d", h.version), names: Names(h.cfg), tensors: map[string]tensor{}}
	return m, m.place(h, raw)
}

// parseBin parses the header.
func parseBin(raw []byte) (binFile, error) {
	h := binFile{start: binHeader0}
	if len(raw) < binHeader0 {
		return h, fmt.Errorf("%w: %d bytes are less than a llama2.c header", ErrNotLlama, len(raw))
	}
	at := 0
	if binary.LittleEndian.Uint32(raw) == binMagic {
		if len(raw) < binHeader {
			return h, fmt.Errorf("%d bytes are less than the header of 256 bytes: the file is truncated", len(raw))
		}
		if h.version = int(int32(binary.LittleEndian.Uint32(raw[4:]))); h.version != 1 && h.version != 2 {
			return h, fmt.Errorf("version %d of llama2.c's format is unknown, only 0, 1 and 2 are supported", h.version)
		}
		at, h.start = 8, binHeader
	}
	var v [7]int
	for i := range v {
		v[i] = int(int32(binary.LittleEndian.Uint32(raw[at+4*i:])))
	}
	at += 28
	tied := v[5] > 0
	if h.version > 0 {
		if raw[at] > 1 {
			return h, fmt.Errorf("the shared-classifier flag is %d, must be 0 or 1", raw[at])
		}
		tied = raw[at] == 1
	} else if v[5] < 0 {
		v[5] = -v[5]
	}
	if h.version == 2 {
		h.group = int(int32(binary.LittleEndian.Uint32(raw[at+1:])))
	}
	h.cfg = llama.Config{Dim: v[0], Hidden: v[1], Layers: v[2], Heads: v[3], KVHeads: v[4], Vocab: v[5], Context: v[6], Tied: tied,
		Theta: binTheta, NormEps: binEps, BOS: 1, EOS: 2}
	if err := limits(h.cfg); err != nil {
		return h, fmt.Errorf("%w: read as a header of llama2.c (version %d): %w", ErrNotLlama, h.version, err)
	}
	return h, nil
}

// run is a contiguous part of the file: one tensor of one layer, or one outside the layers.
type run struct {
	param
	layer, count int // count: values
}

// runs lists the parts in the order of the file.
func runs(c llama.Config, version int) []run {
	parts := map[string]part{}
	for _, p := range before {
		parts[p.hf] = p
	}
	for _, p := range after {
		parts[p.hf] = p
	}
	perLayer := map[string]part{}
	for _, p := range layer {
		perLayer[p.hf] = p
	}
	var out []run
	for _, name := range binOrder[min(version, 1)] {
		if name == tables {
			out = append(out, run{param{name: tables}, 0, c.Context * c.Head()})
			continue
		}
		if p, ok := parts[name]; ok {
			if name != headName || !c.Tied {
				out = append(out, run{param{name: name, shape: p.shape(c)}, 0, count(p.shape(c))})
			}
			continue
		}
		p := perLayer[name]
		for i := range c.Layers {
			q := param{name: fmt.Sprintf("model.layers.%d.%s", i, name), shape: p.shape(c)}
			if p.heads != nil {
				q.heads = p.heads(c)
			}
			out = append(out, run{q, i, count(q.shape)})
		}
	}
	return out
}

// checkSize checks that the file ends where the last tensor does. All layers are alike, so the first stands for all.
func (h binFile) checkSize(have int) error {
	one := h
	one.cfg.Layers = 1
	want := h.start
	for _, r := range runs(one.cfg, h.version) {
		n := 4 * r.count
		if h.quantised(r) {
			if h.group < 1 || h.group > 1<<20 || r.count%h.group != 0 {
				return fmt.Errorf("groups of %d do not divide the %d values of %s", h.group, r.count, r.name)
			}
			n = r.count + 4*(r.count/h.group)
		}
		if strings.HasPrefix(r.name, "model.layers.") {
			n *= h.cfg.Layers
		}
		want += n
	}
	if have != want {
		what := "it is truncated"
		if have > want {
			what = "it has trailing data, or is of another version"
		}
		return fmt.Errorf("the header (version %d) implies a file of %d bytes, but it has %d: %s", h.version, want, have, what)
	}
	return nil
}

// place assigns every tensor its bytes.
func (m *model) place(h binFile, raw []byte) error {
	list := runs(h.cfg, h.version)
	if h.version == 2 {
		return m.placeQuantised(h, raw, list)
	}
	at := h.start
	for _, r := range list {
		b := raw[at : at+4*r.count : at+4*r.count]
		at += 4 * r.count
		if r.name == tables {
			theta, err := tableTheta(b, h.cfg)
			if err != nil {
				return err
			}
			m.cfg.Theta = theta
			continue
		}
		m.tensors[r.name] = m.inFile(r, tensor{shape: r.shape, dtype: safetensors.F32, raw: b})
	}
	return nil
}

// inFile marks rows that are interleaved in llama2.c's files, as in Meta's.
func (m *model) inFile(r run, t tensor) tensor {
	if r.heads > 0 {
		t.pairs = m.cfg.Head()
	}
	return t
}

// tableTheta determines the theta for which the rotary tables of version 0 were made. llama2.c itself ignores them, but its exporter fills them from
// the model, so they reveal a model that llama2.c would rotate wrongly. All-zero tables, as some writers leave them, say nothing.
func tableTheta(raw []byte, c llama.Config) (float64, error) {
	half, n := c.Head()/2, c.Context*c.Head()/2
	at := func(i int) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))) }
	fits := func(theta float64) bool {
		for i := range half {
			a := math.Pow(theta, -2*float64(i)/float64(c.Head()))
			if math.Abs(at(half+i)-math.Cos(a)) > 1e-4 || math.Abs(at(n+half+i)-math.Sin(a)) > 1e-4 {
				return false
			}
		}
		return true
	}
	if c.Context < 2 || fits(binTheta) { // row 0 does not depend on theta
		return binTheta, nil
	}
	zero := true
	for i := range half {
		zero = zero && at(half+i) == 0 && at(n+half+i) == 0
	}
	if zero {
		return binTheta, nil
	}
	if half > 1 { // the angle of the second pair at position 1 is theta^(-2/d)
		theta := math.Pow(math.Atan2(at(n+half+1), at(half+1)), -float64(c.Head())/2)
		if theta = math.Round(theta/10) * 10; theta > 0 && !math.IsInf(theta, 0) && fits(theta) {
			return theta, nil
		}
	}
	return 0, errors.New("the rotary tables match no theta without scaling\n" +
		"hint: export the model in another format, because llama2.c would not rotate it as in training")
}
