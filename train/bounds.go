package train

import (
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/data"
)

// findBounds looks up what the model indexes with the fields of a batch: labels index classes, ids index rows of a table. A batch is checked before
// it is copied to the device, which knows rows but not samples.
func (p *pass) findBounds(fields []data.Field) {
	p.bounds = make([]*graph.Bound, len(fields))
	for _, b := range p.net.b.Bounds() {
		for i, f := range fields {
			if f.Name == b.Input && f.DType == npu.I32 && (p.bounds[i] == nil || b.Below < p.bounds[i].Below) {
				p.bounds[i] = &b
			}
		}
	}
}

// within checks a batch from a source; the error names the sample.
func (p *pass) within(b *data.Batch, src data.Source) error {
	for i, limit := range p.bounds {
		if limit == nil {
			continue
		}
		values := data.I32(b.Fields[i])
		each := len(values) / len(b.Indices)
		for j, v := range values {
			if sample := b.Indices[j/each]; sample >= 0 && (v < 0 || int(v) >= limit.Below) && !(limit.Ignores && int(v) == limit.Ignore) {
				return fmt.Errorf("%s of %s: %s is %d, outside 0…%d\nhint: %s",
					sampleName(src, sample), src.Name(), src.Fields()[i].Name, v, limit.Below-1, outsideHint(limit, src))
			}
		}
	}
	return nil
}

// sampleName is "sample 3", with the path of its file if the source knows it.
func sampleName(src data.Source, i int) string {
	if f, ok := src.(interface{ Path(i int) string }); ok {
		return fmt.Sprintf("sample %d (%s)", i, f.Path(i))
	}
	return fmt.Sprintf("sample %d", i)
}

func outsideHint(b *graph.Bound, src data.Source) string {
	if !b.Ignores {
		return "use the tokenizer of this model: the tokens come from a larger vocabulary"
	}
	if n := len(src.Classes()); n > 0 {
		return fmt.Sprintf("make the model and the data agree: the model has %d classes, the data %d", b.Below, n)
	}
	return fmt.Sprintf("label the model's %d classes from 0; %d marks items to ignore", b.Below, b.Ignore)
}

// fieldList prints the fields of a batch, for a model that asked for a different one.
func fieldList(fields []data.Field) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.String()
	}
	return strings.Join(list, ", ")
}
