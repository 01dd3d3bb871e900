package data

// Order is the order of one epoch: position → sample, in constant time and without a table.
type Order struct {
	p      *permutation
	n      int
	repeat int
	groups *groupOrder
}

// Order returns the order of an epoch.
func (s Sampler) Order(epoch int) Order {
	o := Order{n: s.Len, repeat: max(1, s.Repeat)}
	switch {
	case s.Groups != nil:
		o.groups = s.Groups.order(s.Seed, epoch, s.Shuffle)
	case s.Shuffle:
		o.p = newPermutation(s.Len, s.Seed, epoch)
	}
	return o
}

// At returns the sample at a position of the order, 0 ≤ pos < Len.
func (o Order) At(pos int) int {
	sample, _ := o.Draw(pos)
	return sample
}

// Draw returns the sample at a position, and which of its occurrences in the epoch this is, from 0.
func (o Order) Draw(pos int) (sample, copy int) {
	if o.repeat > 1 {
		pos, copy = spread(pos, o.repeat)
		pos %= o.n // the last block may reach beyond the end
	}
	if o.groups != nil {
		sample, again := o.groups.at(pos)
		return sample, copy + again*o.repeat
	}
	return o.p.at(pos), copy
}

// A block of repeated samples has blockSamples of them. Every copy lists all of the block before the next one does, so that neighbours differ; at odd places
// the order is turned a little further in each copy, so that pairs differ too.
const (
	blockSamples = 16
	maxRepeat    = blockSamples / 2
)

// spread says which sample a position has, counted before they are repeated, and which copy of it.
func spread(pos, repeat int) (sample, copy int) {
	block, in := pos/(blockSamples*repeat), pos%(blockSamples*repeat)
	copy, k := in/blockSamples, in%blockSamples
	if k%2 == 1 {
		k = (k + 2*copy) % blockSamples
	}
	return block*blockSamples + k, copy
}
