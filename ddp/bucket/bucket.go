package bucket

import (
	"fmt"
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// Param is one gradient to place.
type Param struct {
	Name  string
	Elems int64     // elements, padding of a device layout included
	Bytes int64     // 0 = Elems × size of DType
	DType npu.DType // of the gradient
	Group int       // optimizer group; parameters of one group in one bucket are contiguous
}

// Config controls the cut. The zero value suits one rank.
type Config struct {
	CapBytes   int64 // no bucket is larger, except one with a parameter that is itself larger; 0 = 25 MiB
	FirstBytes int64 // cap of the first bucket; 0 = 1 MiB
	LastBytes  int64 // cap of the last bucket; 0 = FirstBytes
	World      int   // ranks; 0 = 1
	AlignBytes int64 // power of two; 0 = 64
}

// Defaults as PyTorch's, whose users know them.
const (
	DefaultCapBytes   = 25 << 20
	DefaultFirstBytes = 1 << 20
	DefaultAlignBytes = 64
	pageBytes         = 4096
)

// Place locates the gradient of a parameter.
type Place struct {
	Param  int   // index into the list given to New
	Offset int64 // bytes from the beginning of the bucket
	Bytes  int64
}

// Run is a contiguous range of one group within a bucket, including alignment gaps.
type Run struct {
	Group  int
	Offset int64 // bytes from the beginning of the bucket
	Elems  int64
	First  int // Places[First:Last] lie in it
	Last   int
}

// Bucket is one range of memory, reduced by one collective.
type Bucket struct {
	DType   npu.DType
	Offset  int64 // bytes from the beginning of the plan's memory
	Bytes   int64 // padded size
	Elems   int64 // Bytes / size of DType
	Payload int64 // bytes of gradients in it, without any padding
	Places  []Place
	Runs    []Run
	Ready   int // index of the parameter that completes it
}

// Plan is the layout of all gradients and their division into buckets. Buckets are in the order in which they are complete: the order of reduction.
type Plan struct {
	Params  []Param
	Buckets []Bucket
	Bytes   int64 // memory of all buckets
	Config  Config
	where   []int // parameter → bucket
}

// New cuts params, given in ready order. It fails on what no plan can serve: a nameless or repeated parameter, a size that is
// not a whole number of elements.
func New(params []Param, cfg Config) (*Plan, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Plan{Params: slices.Clone(params), Config: cfg, where: make([]int, len(params))}
	if err := p.check(); err != nil {
		return nil, err
	}
	for _, part := range cut(p.Params, cfg) {
		p.Buckets = append(p.Buckets, p.lay(part))
	}
	// A bucket is reduced when its last gradient is there; dtypes interleave in that order.
	slices.SortFunc(p.Buckets, func(a, b Bucket) int { return a.Ready - b.Ready })
	for k := range p.Buckets {
		b := &p.Buckets[k]
		b.Offset = p.Bytes
		p.Bytes += align(b.Bytes, pageBytes)
		for _, pl := range b.Places {
			p.where[pl.Param] = k
		}
	}
	return p, nil
}

// Of is the bucket and the place of a parameter.
func (p *Plan) Of(param int) (bucket int, place Place) {
	bucket = p.where[param]
	for _, pl := range p.Buckets[bucket].Places {
		if pl.Param == param {
			return bucket, pl
		}
	}
	panic("bucket: parameter without place")
}

// Title names bucket k by the parameters that become ready first and last in it: "layer4.fc.bias … layer3.conv1.weight".
func (p *Plan) Title(k int) string {
	b := p.Buckets[k]
	first := b.Ready
	for _, pl := range b.Places {
		first = min(first, pl.Param)
	}
	if first == b.Ready {
		return p.Params[first].Name
	}
	return p.Params[first].Name + " … " + p.Params[b.Ready].Name
}

func (c Config) withDefaults() (Config, error) {
	if c.CapBytes == 0 {
		c.CapBytes = DefaultCapBytes
	}
	if c.FirstBytes == 0 {
		c.FirstBytes = min(DefaultFirstBytes, c.CapBytes)
	}
	if c.LastBytes == 0 {
		c.LastBytes = c.FirstBytes
	}
	if c.World == 0 {
		c.World = 1
	}
	if c.AlignBytes == 0 {
		c.AlignBytes = DefaultAlignBytes
	}
	switch {
	case c.CapBytes < 0 || c.FirstBytes < 0 || c.LastBytes < 0:
		return c, fmt.Errorf("bucket: negative size in %+v", c)
	case c.FirstBytes > c.CapBytes || c.LastBytes > c.CapBytes:
		return c, fmt.Errorf("bucket: first (%d bytes) and last (%d bytes) bucket must not be larger than the cap (%d bytes)", c.FirstBytes, c.LastBytes, c.CapBytes)
	case c.World < 0:
		return c, fmt.Errorf("bucket: world of %d ranks", c.World)
	case c.AlignBytes < 8 || c.AlignBytes&(c.AlignBytes-1) != 0:
		return c, fmt.Errorf("bucket: alignment of %d bytes is not a power of two of at least 8", c.AlignBytes)
	}
	return c, nil
}

func (p *Plan) check() error {
	seen := make(map[string]int, len(p.Params))
	for i := range p.Params {
		q := &p.Params[i]
		size := int64(q.DType.Size())
		if q.Bytes == 0 {
			q.Bytes = q.Elems * size
		}
		switch {
		case q.Name == "":
			return fmt.Errorf("bucket: parameter %d has no name", i)
		case size == 0:
			return fmt.Errorf("bucket: parameter %s has dtype %v", q.Name, q.DType)
		case q.Elems <= 0:
			return fmt.Errorf("bucket: parameter %s has %d elements", q.Name, q.Elems)
		case q.Bytes < q.Elems*size || q.Bytes%size != 0:
			return fmt.Errorf("bucket: parameter %s has %d bytes for %d elements of %v", q.Name, q.Bytes, q.Elems, q.DType)
		}
		if j, dup := seen[q.Name]; dup {
			return fmt.Errorf("bucket: parameters %d and %d are both named %s", j, i, q.Name)
		}
		seen[q.Name] = i
	}
	return nil
}

// lay places the parameters of one bucket.
func (p *Plan) lay(part []int) Bucket {
	ready := slices.Max(part)
	order := slices.Clone(part)
	slices.SortStableFunc(order, func(a, b int) int { return p.Params[a].Group - p.Params[b].Group })
	b := Bucket{DType: p.Params[part[0]].DType, Ready: ready}
	size := int64(b.DType.Size())
	for i, j := range order {
		q := p.Params[j]
		off := align(b.Bytes, p.Config.AlignBytes)
		b.Places = append(b.Places, Place{Param: j, Offset: off, Bytes: q.Bytes})
		b.Payload += q.Bytes
		b.Bytes = off + q.Bytes
		if n := len(b.Runs); n == 0 || b.Runs[n-1].Group != q.Group {
			b.Runs = append(b.Runs, Run{Group: q.Group, Offset: off, First: i})
		}
		r := &b.Runs[len(b.Runs)-1]
		r.Elems, r.Last = (b.Bytes-r.Offset)/size, i+1
	}
	b.Bytes = align(b.Bytes, int64(p.Config.World)*p.Config.AlignBytes)
	b.Elems = b.Bytes / size
	return b
}

// align rounds n up to a multiple of a, which need not be a power of two.
func align(n, a int64) int64 { return (n + a - 1) / a * a }
