//go:build cgo && linux && (amd64 || arm64)

package kern

import "github.com/gotrain/gotrain/npu"

// PrepareFor is Prepare for a weaker instruction set than this processor's best: 0 is the baseline.
func PrepareFor(op npu.Op, isa int) (*Call, bool) { return prepareFor(op, isa) }

// ISAs are the instruction sets that this processor has, weakest first.
func ISAs() []string { return isaNames[:best()+1] }

// Kinds are those that have a kernel.
func Kinds() map[string]bool {
	k := map[string]bool{}
	for kind := range prepare {
		k[kind] = true
	}
	return k
}

// Tiles allows and forbids the use of AMX.
func Tiles(on bool) { tilesOff = !on }

// Small tensors must be split too, to see that it makes no difference.
func init() { setGrain(1) }

// Apart chooses how products of a few rows walk the matrix: 1 in streams, 0 by neighbouring rows, -1 as this processor prefers.
func Apart(way int) { setApart(way) }

// Table is the address of the constants of a call.
func Table(c *Call) uintptr { return uintptr(c.table.mem) }

// CallFor is Call for an instruction set: 0 is the baseline.
func (p *Pairs) CallFor(isa int) *Call { return p.callFor(isa) }

// Past changes from how many bytes on batch norm writes past the caches, and returns what it was.
func Past(bytes int64) int64 { return setPast(bytes) }
