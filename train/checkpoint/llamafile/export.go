package llamafile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// The formats that Export writes.
const (
	HF      = "hf"      // a folder in Hugging Face's format
	Llama2C = "llama2c" // version 0 of llama2.c's file
	Meta    = "meta"    // Meta's names in a safetensors file, and params.json
)

// Formats lists the formats that Export writes.
func Formats() []string { return []string{HF, Llama2C, Meta} }

// DefaultShard is the size above which weights are split into several files, as Hugging Face does.
const DefaultShard = 5_000_000_000

// Options configure Export.
type Options struct {
	DType    safetensors.DType // F32, BF16 or F16; "": F32. llama2.c stores F32 only
	Shard    int64             // maximum bytes of tensors per file in format hf; 0: DefaultShard
	Context  int               // a shorter context to declare; 0: the model's
	Files    []string          // copied into the folder unchanged: tokenizers, licences; of a folder, the tokenizer files in it
	Force    bool              // replace an earlier export
	Progress func(done, total int64)
}

// Report describes what Export wrote.
type Report struct {
	Path     string   `json:"path"`
	Format   string   `json:"format"`
	DType    string   `json:"dtype"`
	Files    []string `json:"files"` // names in Path; the base name of Path if that is a file
	Bytes    int64    `json:"bytes"`
	Tensors  int      `json:"tensors"`
	Params   int64    `json:"parameters"`
	Warnings []string `json:"warnings,omitempty"`
}

// ErrExists is wrapped by the error of Export if the destination exists.
var ErrExists = errors.New("it already exists")

// export is one run of Export.
type export struct {
	ctx    context.Context
	m      Model
	cfg    llama.Config
	opts   Options
	eos    []int
	report Report
	done   int64
	total  int64
	values []float32
	bytes  []byte
}

// piece is how many values are converted at once, which bounds the memory for a matrix of any size.
const piece = 1 << 20

// Export writes a model in another format. dest is a folder; for llama2c it may be a file whose name ends in .bin. Everything is first written under
// a temporary name next to dest, then synced and renamed, so that dest is complete or absent. Tensors are converted a few megabytes at a time.
func Export(ctx context.Context, m Model, format, dest string, opts Options) (Report, error) {
	e := &export{ctx: ctx, m: m, cfg: m.Config(), opts: opts}
	if e.opts.DType == "" {
		e.opts.DType = safetensors.F32
	}
	e.report = Report{Path: dest, Format: format, DType: string(e.opts.DType), Tensors: len(m.Names()), Params: e.cfg.Params()}
	if err := e.run(format, dest); err != nil {
		return Report{}, fmt.Errorf("llamafile: export to %s: %w", dest, err)
	}
	return e.report, nil
}

func (e *export) run(format, dest string) error {
	if err := e.prepare(format); err != nil {
		return err
	}
	files, err := tokenizerFiles(e.opts.Files)
	if err != nil {
		return err
	}
	single := format == Llama2C && filepath.Ext(dest) == ".bin"
	if single && len(files) > 0 {
		return errors.New("a single file cannot include a tokenizer\nhint: use a folder as the destination")
	}
	p, err := newPlace(dest, single, e.opts.Force)
	if err != nil {
		return err
	}
	defer p.discard()
	switch format {
	case HF:
		err = e.writeHF(p)
	case Meta:
		err = e.writeMeta(p)
	case Llama2C:
		err = e.writeBin(p)
	}
	for _, f := range files {
		if err == nil {
			err = p.copy(f)
		}
	}
	if err == nil {
		err = p.commit()
	}
	e.report.Files, e.report.Bytes = p.files, p.bytes
	return err
}

// prepare checks what can be checked before anything is written.
func (e *export) prepare(format string) error {
	if !slices.Contains(Formats(), format) {
		return fmt.Errorf("unknown format %q\nhint: use one of %q", format, Formats())
	}
	if _, ok := torchNames[e.opts.DType]; !ok {
		return fmt.Errorf("weights cannot be stored as %s\nhint: use F32, BF16 or F16", e.opts.DType)
	}
	if format == Llama2C && e.opts.DType != safetensors.F32 {
		return fmt.Errorf("llama2.c stores F32, not %s", e.opts.DType)
	}
	if c := e.opts.Context; c < 0 || c > e.cfg.Context {
		return fmt.Errorf("the requested context of %d exceeds the model's context of %d", c, e.cfg.Context)
	} else if c > 0 && c < e.cfg.Context {
		e.warn("the context is shortened from %d to %d", e.cfg.Context, c)
		e.cfg.Context = c
	}
	if x, ok := e.m.(interface{ EOSIDs() []int }); ok {
		e.eos = x.EOSIDs()
	}
	for _, name := range e.m.Names() {
		if e.m.DType(name) == safetensors.I8 {
			e.warn("the weights were quantised to int8: the export has that precision, not the original's")
			break
		}
	}
	for _, name := range e.m.Names() {
		s, _ := e.m.Shape(name)
		e.total += int64(count(s)) * e.opts.DType.Size()
	}
	return limits(e.cfg)
}

func (e *export) warn(format string, a ...any) {
	e.report.Warnings = append(e.report.Warnings, fmt.Sprintf(format, a...))
}

// stream writes the values of a parameter as dtype, one piece at a time; interleaved requests Meta's order of rows.
func (e *export) stream(w io.Writer, p param, dtype safetensors.DType, interleaved bool) error {
	cols := count(p.shape[1:])
	step := max(1, piece/cols)
	if interleaved && p.heads > 0 { // whole heads, because rows are reordered within a head
		d := e.cfg.Head()
		step = max(1, step/d) * d
	}
	if n := 2 * min(step, p.shape[0]) * cols; len(e.values) < n {
		e.values = make([]float32, n)
	}
	for first := 0; first < p.shape[0]; first += step {
		if err := e.ctx.Err(); err != nil {
			return context.Cause(e.ctx)
		}
		n := min(step, p.shape[0]-first) * cols
		x := e.values[:n]
		if err := e.m.ReadRows(p.name, first, x); err != nil {
			return err
		}
		if interleaved && p.heads > 0 {
			d := e.cfg.Head()
			y := e.values[n : 2*n]
			if err := Unpermute(y, x, n/cols/d, d); err != nil {
				return err
			}
			x = y
		}
		var err error
		if e.bytes, err = safetensors.AppendFloat32s(e.bytes[:0], x, dtype); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if _, err := w.Write(e.bytes); err != nil {
			return err
		}
		if e.done += int64(len(e.bytes)); e.opts.Progress != nil {
			e.opts.Progress(e.done, e.total)
		}
	}
	return nil
}

// writeTensors writes one safetensors file of parameters, with names from named.
func (e *export) writeTensors(p *place, file string, list []param, meta map[string]string, named func(param) string, interleaved bool) error {
	of := map[string]param{}
	var tensors []safetensors.Tensor
	for _, x := range list {
		t := safetensors.Tensor{Name: named(x), DType: e.opts.DType}
		for _, d := range x.shape {
			t.Shape = append(t.Shape, int64(d))
		}
		of[t.Name], tensors = x, append(tensors, t)
	}
	return p.write(file, func(w io.Writer) error {
		return safetensors.Write(w, tensors, meta, func(t safetensors.Tensor, w io.Writer) error {
			return e.stream(w, of[t.Name], t.DType, interleaved)
		})
	})
}

// writeHF makes a folder in Hugging Face's format.
func (e *export) writeHF(p *place) error {
	config, err := encodeConfig(e.cfg, e.opts.DType, e.eos)
	if err != nil {
		return err
	}
	generation, err := encodeGeneration(e.cfg, e.eos)
	if err != nil {
		return err
	}
	limit := e.opts.Shard
	if limit <= 0 {
		limit = DefaultShard
	}
	shards := split(params(e.cfg), e.opts.DType.Size(), limit)
	named := func(x param) string { return x.name }
	meta := map[string]string{"format": "pt"}
	if len(shards) == 1 {
		err = e.writeTensors(p, "model.safetensors", shards[0], meta, named, false)
	} else {
		err = e.writeShards(p, shards, meta, named)
	}
	if err == nil {
		err = p.put(ConfigFile, config)
	}
	if err == nil {
		err = p.put(GenerationFile, generation)
	}
	return err
}

func (e *export) writeShards(p *place, shards [][]param, meta map[string]string, named func(param) string) error {
	home := map[string]string{}
	for i, list := range shards {
		file := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		for _, x := range list {
			home[x.name] = file
		}
		if err := e.writeTensors(p, file, list, meta, named, false); err != nil {
			return err
		}
	}
	index, err := json.MarshalIndent(map[string]any{"metadata": map[string]int64{"total_size": e.total}, "weight_map": home}, "", "  ")
	if err != nil {
		return err
	}
	return p.put(safetensors.IndexName, append(index, '\n'))
}

// split fills files up to the limit, in the network's order; a tensor above the limit gets a separate file.
func split(list []param, size, limit int64) [][]param {
	var out [][]param
	used := int64(0)
	for _, x := range list {
		n := size * int64(count(x.shape))
		if len(out) == 0 || used+n > limit {
			out, used = append(out, nil), 0
		}
		last := len(out) - 1
		out[last] = append(out[last], x)
		used += n
	}
	return out
}

// writeMeta makes a folder with Meta's names.
func (e *export) writeMeta(p *place) error {
	raw, meta, err := encodeParams(e.cfg)
	if err != nil {
		return err
	}
	if f := e.cfg.Scaling.Factor; e.cfg.Scaling.On() && f != 8 {
		e.warn("%s cannot express a rope factor of %s: other readers assume 8 unless they know the model", ParamsFile, strconv.FormatFloat(f, 'g', -1, 64))
	}
	if len(e.eos) > 1 {
		e.warn("only the first of %d ids that end a text is kept", len(e.eos))
	}
	if err := e.writeTensors(p, "model.safetensors", params(e.cfg), meta, func(x param) string { return x.meta }, true); err != nil {
		return err
	}
	return p.put(ParamsFile, raw)
}

// tokenizerNames are the tokenizer files usually found next to weights.
var tokenizerNames = []string{"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.bin"}

// tokenizerFiles lists the files to copy.
func tokenizerFiles(paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		st, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if st.Mode().IsRegular() {
			out = append(out, path)
			continue
		}
		before := len(out)
		for _, name := range tokenizerNames {
			if ok, err := exists(filepath.Join(path, name)); err != nil {
				return nil, err
			} else if ok {
				out = append(out, filepath.Join(path, name))
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("%s contains no tokenizer file: none of %q", path, tokenizerNames)
		}
	}
	return out, nil
}
