package train

import (
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/data"
)

// findBounds looks up what the model indexes with the fields of a batch: labels index classes, ids index rows of a table. A batch is checked before
// it is copied to the device, which knows rows but not samples, and may not look at all.
func (p *pass) findBounds(fields []data.Field) {
	p.bounds = make([][]graph.Bound, len(fields))
	for _, b := range p.net.b.Bounds() {
		for i, f := range fields {
			if f.Name == b.Input && !f.DType.IsFloat() {
				p.bounds[i] = append(p.bounds[i], b)
			}
		}
	}
}

// unchecked warns of indices that nobody checks: the device does not, and the model computes them.
func (p *pass) unchecked(info npu.Info) string {
	calls := p.net.b.Unbounded()
	if !info.Unchecked || len(calls) == 0 {
		return ""
	}
	return fmt.Sprintf("the model computes the indices of %s, and device %s does not check them: a value out of range gives undefined results",
		strings.Join(shorten(calls, 4), ", "), info.Name)
}

// within checks a batch from a source; the error names the sample.
func (p *pass) within(b *data.Batch, src data.Source) error {
	for i, limits := range p.bounds {
		for k := range limits {
			f := src.Fields()[i]
			each := len(b.Fields[i]) / f.DType.Size() / len(b.Indices)
			at, v, outside := limits[k].Outside(f.DType, b.Fields[i])
			if !outside {
				continue
			}
			if sample := b.Indices[at/each]; sample >= 0 && (at/each < b.Valid || !f.Target) {
				return fmt.Errorf("%s of %s: %s%s is %d, outside 0…%d\nhint: %s", sampleName(src, sample), src.Name(), f.Name, position(at%each, f.Shape), v,
					limits[k].Below-1, outsideHint(&limits[k], src))
			}
			return fmt.Errorf("%s: a row that does not count has %s %d, which the model does not ignore\n"+
				"hint: let the model ignore %d, the default of ignore_index", src.Name(), f.Name, v, data.Ignore)
		}
	}
	return nil
}

// position is "[3 17]": where an element is in a tensor; "" for a scalar.
func position(at int, shape []int) string {
	if len(shape) == 0 {
		return ""
	}
	p := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		p[d], at = at%shape[d], at/shape[d]
	}
	return fmt.Sprint(p)
}

// sampleName is "sample 3", with the path of its file if the source knows it.
func sampleName(src data.Source, i int) string {
	if f, ok := src.(interface{ Path(i int) string }); ok {
		return fmt.Sprintf("sample %d (%s)", i, f.Path(i))
	}
	return fmt.Sprintf("sample %d", i)
}

func outsideHint(b *graph.Bound, src data.Source) string {
	if b.Negative {
		return fmt.Sprintf("positions must be below the %d places that the model has", b.Below)
	}
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
