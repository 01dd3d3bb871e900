package lower_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/abi"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

// passes counts how often calls read or write a whole vector of n elements.
func passes(calls []lower.Call, n int64) (total int) {
	for _, c := range calls {
		row, _ := abi.Find(c.Op)
		read, written := map[lower.Ref]bool{}, map[lower.Ref]bool{}
		for i, a := range c.Args {
			if a.Null || a.Tensor.Dims == nil || a.Tensor.Elems() != n {
				continue
			}
			if isOutput(row.Args[i]) {
				written[a.Tensor.Base] = true
			}
			if !isOutput(row.Args[i]) || strings.HasSuffix(row.Args[i].Name, "Ref") {
				read[a.Tensor.Base] = true
			}
		}
		total += len(read) + len(written)
	}
	return total
}

// The fused operator of AdamW is worth its first phase in every step: it needs a third of the passes over memory. docs/ascend-kinds.md has these numbers.
func TestPassesOfAdamW(t *testing.T) {
	v := f(1 << 20)
	s := sample{"", op(npu.AdamW, npu.Attrs{"coupled": false}, list{f(9), v, v, v, v}, v, v, v)}
	with := exporting(version(9, 0, lower.A2).caps)
	without := with
	without.Symbols = func(op string) bool { return op != "ApplyAdamWV2" }
	for _, c := range []struct {
		name          string
		caps          lower.Caps
		scale         float32
		calls, passes int
	}{
		{"fused", with, 1, 2, 7},
		{"fused, gradient scaled", with, 0.5, 3, 9},
		{"composed", without, 0.5, 19, 24},
		{"CANN 8.1", version(8, 1, lower.A3).caps, 0.5, 3, 9},
	} {
		p := program(t, s, c.caps)
		var l []lower.Call
		for _, x := range p.Calls {
			if x.Holds(inPlace(s)) && (x.When == nil || x.When.Holds(c.scale)) {
				l = append(l, x)
			}
		}
		if n := passes(l, 1<<20); n != c.passes || len(l) != c.calls {
			t.Errorf("%s: %d passes over memory by %d calls, want %d by %d\n%s", c.name, n, len(l), c.passes, c.calls, p)
		}
		if fused := c.passes < 24; slices.Equal(p.Host(), []int{0}) != fused || len(p.Host()) > 1 {
			t.Errorf("%s: the host must know inputs %v", c.name, p.Host())
		}
	}
}
