package plan

import (
	"cmp"
	"slices"

	"github.com/gotrain/gotrain/graph/op"
)

// Align is the alignment of every tensor in the arena, in bytes: a cache line, and enough for every vector unit.
const Align = 64

// block is arena memory that one tensor, or several in turn, live in.
type block struct {
	bytes       int64
	first, last int
	offset      int64
	tensors     []ID
}

// Memory resolves reshapes: the tensor whose memory id really is.
func (p *Plan) Memory(id ID) ID {
	for p.Tensors[id].alias != None {
		id = p.Tensors[id].alias
	}
	return id
}

// measure asks the target for the sizes of all tensors.
func (p *Plan) measure(t Target) (err error) {
	for i := range p.Tensors {
		x := &p.Tensors[i]
		if x.Bytes, err = t.Bytes(x.Desc); err != nil {
			return err
		}
	}
	return nil
}

// Place computes lifetimes, in-place reuse and arena offsets: of tensors, and of the workspaces of kernels (Step.Work). Build has done it for a
// program whose kernels need no workspace. Call it again when their sizes are known.
func (p *Plan) Place() {
	for _, id := range p.inherited {
		p.Tensors[id].alias, p.Tensors[id].Place = None, Arena
	}
	p.inherited = nil
	p.lifetimes()
	if !p.options.NoReuse {
		p.inherit()
	}
	blocks := p.blocks(p.options)
	p.Arena, p.Live = pack(blocks, p.options.NoReuse), live(blocks, len(p.Steps))
	for _, b := range blocks {
		for _, id := range b.tensors {
			p.Tensors[id].Offset = b.offset
		}
		if len(b.tensors) == 0 {
			p.Steps[b.first].WorkAt = b.offset
		}
	}
	for i := range p.Tensors {
		if r := p.Memory(ID(i)); r != ID(i) {
			p.Tensors[i].Offset, p.Tensors[i].Place = p.Tensors[r].Offset, p.Tensors[r].Place
		}
	}
}

// lifetimes finds for each tensor the step that makes it and the last one that reads it.
func (p *Plan) lifetimes() {
	for i := range p.Tensors {
		p.Tensors[i].First, p.Tensors[i].Last = -1, -1
	}
	for si := range p.Once {
		for _, out := range p.Steps[si].Out {
			p.Tensors[out].Last = len(p.Steps) // kept between runs
		}
	}
	for si := range p.Steps {
		for _, in := range p.Steps[si].In {
			for _, id := range []ID{in, p.Memory(in)} {
				p.Tensors[id].Last = max(p.Tensors[id].Last, si) // never earlier: a reshape of what is kept must not end its life
			}
		}
		for _, out := range p.Steps[si].Out {
			if x := out; x != None && p.Tensors[x].Role == Temp {
				p.Tensors[x].First = si
				p.Tensors[x].Last = max(p.Tensors[x].Last, si)
			}
		}
	}
}

// inherit puts a tensor that a gradient is made from in place (the sum so far of a table that is used twice) where the gradient will be.
func (p *Plan) inherit() {
	for si := range p.Steps {
		s := &p.Steps[si]
		k, err := op.Lookup(s.Op.Kind)
		if s.Host != nil || err != nil {
			continue
		}
		for _, pair := range k.Pairs(s.Op.Attrs) {
			if pair[0] >= len(s.Out) || pair[1] >= len(s.In) || s.Out[pair[0]] == None || !p.isGrad(s.Out[pair[0]]) {
				continue
			}
			in, out := s.In[pair[1]], s.Out[pair[0]]
			x, y := &p.Tensors[in], &p.Tensors[out]
			if x.alias != None || x.Role != Temp || x.Place != Arena || x.First < 0 || x.Last != si || !x.Desc.Equal(y.Desc) || p.aliased(in) || count(s.In, in) != 1 {
				continue
			}
			x.alias, x.Place = out, Bound
			p.inherited = append(p.inherited, in)
			y.First = x.First
			break
		}
	}
}

// aliased says whether another tensor is a reshape of id.
func (p *Plan) aliased(id ID) bool {
	for i := range p.Tensors {
		if p.Tensors[i].alias == id {
			return true
		}
	}
	return false
}

// count tells how often id is among ids.
func count(ids []ID, id ID) (n int) {
	for _, x := range ids {
		if x == id {
			n++
		}
	}
	return n
}

// blocks gives every arena tensor and every workspace a block, in step order, joining an output to a dying input where the kind allows it.
func (p *Plan) blocks(o Options) []*block {
	var all []*block
	of := map[ID]*block{}
	for si := range p.Steps {
		s := &p.Steps[si]
		if s.Work > 0 {
			all = append(all, &block{bytes: s.Work, first: si, last: si})
		}
		taken := map[*block]bool{}
		for j, out := range s.Out {
			if out == None {
				continue
			}
			x := &p.Tensors[out]
			staged := x.Place == Bound && x.Role == Temp && o.Accumulate && p.isGrad(out)
			if x.Role != Temp || (x.Place == Bound && !staged) {
				continue
			}
			b := (*block)(nil)
			if !o.NoReuse && !staged {
				b = p.reuse(si, j, of, taken)
			}
			if b == nil {
				b = &block{bytes: x.Bytes, first: min(si, max(x.First, 0))}
				all = append(all, b)
			}
			taken[b] = true
			b.last = max(b.last, x.Last)
			b.tensors = append(b.tensors, out)
			of[out] = b
		}
	}
	return all
}

func (p *Plan) isGrad(id ID) bool {
	for _, w := range p.Weights {
		if w.Grad == id {
			return true
		}
	}
	return false
}

// reuse finds the block of an input that output j of step si may overwrite, or nil.
func (p *Plan) reuse(si, j int, of map[ID]*block, taken map[*block]bool) *block {
	s := &p.Steps[si]
	if s.Host != nil {
		return nil
	}
	k, err := op.Lookup(s.Op.Kind)
	if err != nil {
		return nil
	}
	for _, pair := range k.Pairs(s.Op.Attrs) {
		if pair[0] != j || pair[1] >= len(s.In) {
			continue
		}
		in := p.Memory(s.In[pair[1]])
		b := of[in]
		if b == nil || taken[b] || b.last != si || b.bytes != p.Tensors[s.Out[j]].Bytes || p.Tensors[in].Desc.Layout != p.Tensors[s.Out[j]].Desc.Layout {
			continue
		}
		times := 0
		for _, other := range s.In {
			if of[p.Memory(other)] == b {
				times++
			}
		}
		if times == 1 {
			return b
		}
	}
	return nil
}

// pack assigns offsets: large blocks first, each into the smallest gap that is free during its life (best fit, as in
// the greedy-by-size planner of Pisarchyk and Lee, arXiv 2001.03288). It returns the bytes used.
func pack(blocks []*block, apart bool) int64 {
	order := slices.Clone(blocks)
	slices.SortStableFunc(order, func(a, b *block) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.first, b.first))
	})
	var placed []*block // sorted by offset
	var top int64
	for _, b := range order {
		best, bestGap, end := int64(-1), int64(0), int64(0)
		for _, q := range placed {
			if !apart && (q.last < b.first || b.last < q.first) {
				continue
			}
			if gap := q.offset - end; gap >= round(b.bytes) && (best < 0 || gap < bestGap) {
				best, bestGap = end, gap
			}
			end = max(end, q.offset+round(q.bytes))
		}
		if best < 0 {
			best = end
		}
		b.offset = best
		top = max(top, best+round(b.bytes))
		at, _ := slices.BinarySearchFunc(placed, b, func(x, y *block) int { return cmp.Compare(x.offset, y.offset) })
		placed = slices.Insert(placed, at, b)
	}
	return top
}

// live is the most that blocks need at one time: no arrangement is smaller.
func live(blocks []*block, steps int) (most int64) {
	change := make([]int64, steps+2)
	for _, b := range blocks {
		change[b.first] += round(b.bytes)
		change[min(b.last, steps)+1] -= round(b.bytes)
	}
	now := int64(0)
	for _, c := range change {
		now += c
		most = max(most, now)
	}
	return most
}

func round(n int64) int64 { return (n + Align - 1) / Align * Align }
