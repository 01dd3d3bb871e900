//go:build cgo && linux && (amd64 || arm64)

package kern

// #include "attention.h"
//
// static kern_cmd kern_at_cmd(const int64_t *n, int flags) {
//     kern_cmd c = {.flags = flags};
//     for (int i = 0; i < 7; i++) c.n[i] = n[i];
//     return c;
// }
// static int64_t kern_at_units(const int64_t *n, int flags) {
//     kern_cmd c = kern_at_cmd(n, flags);
//     return at_units(&c);
// }
// static int64_t kern_at_workspace(const int64_t *n, int flags) {
//     kern_cmd c = kern_at_cmd(n, flags);
//     return at_workspace(&c);
// }
import "C"

import "github.com/gotrain/gotrain/npu"

func init() {
	register(npu.Attention, func(op npu.Op) *Call { return attention("attention", op, 0, op.Out[1:]) })
	register(npu.AttentionBwd, func(op npu.Op) *Call { return attention("attention_bwd", op, 1, op.In[5:6]) })
}

// tilesOff is set by tests of the form without AMX.
var tilesOff = false

func useTiles() bool {
	_, limited := limited()
	return !tilesOff && !limited && C.kern_amx() != 0
}

// attention makes the Call of either direction: q, k and v are the inputs from number q on; lse is checked too.
func attention(kernel string, op npu.Op, q int, lse []npu.Desc) *Call {
	x, k := op.In[q], op.In[q+1]
	dt, ok := act(x.DType)
	acts := append([]npu.Desc{x, k, op.In[q+2], op.In[0], op.Out[0]}, op.In[4*q:5*q]...)
	slots, seg, flags := []int{0, 1, 2}, 3, 0
	if q == 1 { // backward
		acts = append(acts, op.Out[1:]...)
		slots, seg, flags = []int{0, 1, 2, 3, 4, 5}, 6, C.AT_BWD
	}
	if !ok || x.Layout != npu.Plain || !alike(acts...) || !plainF32(lse...) || x.Shape.Elems() == 0 || k.Shape.Elems() == 0 {
		return nil
	}
	if op.Attrs.Bool("seg") {
		if op.In[seg].Layout != npu.Plain {
			return nil
		}
		slots = append(slots, seg)
	}
	c := &Call{n: []int64{int64(x.Shape[0]), int64(x.Shape[1]), int64(k.Shape[1]), int64(x.Shape[2]), int64(k.Shape[2]), int64(x.Shape[3]), 0, 0, 0}}
	masks, ok := c.masks(op, len(slots))
	if !ok {
		return nil
	}
	slots = append(slots, masks...)
	flags |= bit(len(masks) > 0, C.AT_MASKED)
	for i := range op.Out {
		slots = append(slots, seg+1+i)
	}
	c.kernel, c.dt, c.slots, c.f, c.perThread = kernel, dt, slots, []float64{op.Attrs.Float("scale", 1)}, attentionWorkspace
	c.flags = flags | bit(op.Attrs.Bool("causal"), C.AT_CAUSAL) | bit(op.Attrs.Bool("seg"), C.AT_SEG)
	if x.DType == npu.BF16 && len(masks) == 0 {
		c.tiles = C.AT_TILES
	}
	return c
}

// masks gives the slots of the masks by keys and by pairs, which are the inputs from next on, and sets the steps of the latter.
func (c *Call) masks(op npu.Op, next int) (slots []int, ok bool) {
	for _, attr := range []string{"keys", "mask"} {
		if !op.Attrs.Bool(attr) {
			continue
		}
		m := op.In[next]
		if next++; m.Layout != npu.Plain {
			return nil, false
		}
		if attr == "keys" {
			slots = append(slots, 10)
			continue
		}
		slots = append(slots, 11)
		plane := int64(m.Shape[2]) * int64(m.Shape[3])
		if m.Shape[1] > 1 {
			c.n[8] = plane
		}
		if m.Shape[0] > 1 {
			c.n[7] = plane * int64(m.Shape[1])
		}
	}
	return slots, true
}

// attentionWorkspace has room for one worker per thread, or per unit of work if there are fewer units.
func attentionWorkspace(c *Call, threads int) int64 {
	n, flags := (*C.int64_t)(&c.n[0]), C.int(c.flags)
	c.n[6] = min(int64(threads), int64(C.kern_at_units(n, flags)))
	return int64(C.kern_at_workspace(n, flags))
}
