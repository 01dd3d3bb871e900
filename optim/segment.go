package optim

import (
	"errors"
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
)

// Segment is a stretch of flat f32 memory that is stepped as one, such as the parameters of a gradient bucket. Weight and
// Grad run in parallel: element i of one belongs to element i of the other, and the state has the same order, so a
// layout that the kernels want is kept everywhere.
type Segment struct {
	Name   string
	Weight npu.Ptr
	Grad   npu.Ptr // none: the segment is not trained but only averaged, such as running statistics; it requires Config.EMA
	Elems  int64
	// Tensors are the parameters in the segment, rising and not overlapping. Empty means one tensor, named like the segment, in
	// group 0. What lies between tensors (padding) must hold zeros in both memories; it stays zero.
	Tensors []Tensor
}

// Tensor is one parameter within a segment.
type Tensor struct {
	Name  string
	Off   int64 // first element within the segment
	Elems int64 // in memory, padding of its layout included
	Group int   // index into Config.Groups
}

// run is a part of a segment that one launch can step: neighbours of one group.
type run struct {
	off, elems int64
	group      int
}

// runs joins neighbouring tensors of one group, but those of a group that is single: every tensor of an adaptive group (LARS, LAMB) needs its own norms.
func (s Segment) runs(single func(group int) bool) []run {
	var out []run
	for _, t := range s.Tensors {
		if n := len(out) - 1; n >= 0 && out[n].group == t.Group && !single(t.Group) {
			out[n].elems = t.Off + t.Elems - out[n].off
			continue
		}
		out = append(out, run{t.Off, t.Elems, t.Group})
	}
	return out
}

// withTensors fills in the one tensor of a segment that names none.
func (s Segment) withTensors() Segment {
	if len(s.Tensors) == 0 {
		s.Tensors = []Tensor{{Name: s.Name, Elems: s.Elems}}
	}
	return s
}

// validateSegments returns all errors joined.
func validateSegments(segments []Segment, groups int, averaged bool) error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf("optim: "+format, a...)) }
	if len(segments) == 0 {
		bad("no segments to optimize")
	}
	seen := map[string]bool{}
	for i, s := range segments {
		if s.Elems <= 0 || s.Elems > math.MaxInt64/8 {
			bad("segment %d (%s): size must be above 0, got %d elements", i, s.Name, s.Elems)
			continue
		}
		for what, p := range map[string]npu.Ptr{"weight": s.Weight, "gradient": s.Grad} {
			if p.IsNil() && what == "gradient" && averaged {
				continue
			}
			if p.IsNil() {
				bad("segment %d (%s): no %s memory", i, s.Name, what)
			} else if p.Off < 0 || p.Off+4*s.Elems > p.Buf.Bytes() {
				bad("segment %d (%s): %s memory of %d bytes at offset %d reaches beyond its buffer of %d bytes", i, s.Name, what, 4*s.Elems, p.Off, p.Buf.Bytes())
			}
		}
		end := int64(0)
		for _, t := range s.withTensors().Tensors {
			if t.Elems <= 0 || t.Off < end || t.Off+t.Elems > s.Elems {
				bad("segment %d (%s): tensor %s at elements %d…%d overlaps its predecessor or leaves the segment of %d", i, s.Name, t.Name, t.Off, t.Off+t.Elems, s.Elems)
			}
			if t.Group < 0 || t.Group >= groups {
				bad("segment %d (%s): tensor %s names group %d of %d", i, s.Name, t.Name, t.Group, groups)
			}
			if seen[t.Name] {
				bad("duplicate tensor %s", t.Name)
			}
			seen[t.Name] = true
			end = t.Off + t.Elems
		}
	}
	return errors.Join(errs...)
}
