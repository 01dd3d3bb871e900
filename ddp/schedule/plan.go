package schedule

import "fmt"

// Item is one collective of a step.
type Item struct{ Bucket, Phase int }

func (i Item) String() string { return fmt.Sprintf("bucket %d phase %d", i.Bucket, i.Phase) }

// Plan is the order of issue of a step's collectives.
type Plan struct {
	buckets, phases int
	lanes           [][]Item
}

// New plans a step of buckets with a number of phases each, over a number of groups: one per phase, or 1.
func New(buckets, phases, groups int) (*Plan, error) {
	switch {
	case buckets < 0 || phases < 1:
		return nil, fmt.Errorf("schedule: %d buckets of %d phases", buckets, phases)
	case groups != 1 && groups != phases:
		return nil, fmt.Errorf("schedule: %d groups for %d phases: want one, or one per phase", groups, phases)
	}
	p := &Plan{buckets: buckets, phases: phases, lanes: make([][]Item, groups)}
	for k := range buckets {
		for phase := range phases {
			l := p.LaneOf(phase)
			p.lanes[l] = append(p.lanes[l], Item{k, phase})
		}
	}
	return p, nil
}

// Buckets is the number of buckets.
func (p *Plan) Buckets() int { return p.buckets }

// Phases is the number of collectives of a bucket.
func (p *Plan) Phases() int { return p.phases }

// Lanes is the number of groups.
func (p *Plan) Lanes() int { return len(p.lanes) }

// Lane is the order of issue in a group: equal on all ranks, and in all steps. The slice must not be changed.
func (p *Plan) Lane(l int) []Item { return p.lanes[l] }

// LaneOf is the group of a phase.
func (p *Plan) LaneOf(phase int) int {
	if len(p.lanes) == 1 {
		return 0
	}
	return phase
}

// Last reports whether the bucket holds its sum after this item.
func (p *Plan) Last(it Item) bool { return it.Phase == p.phases-1 }
