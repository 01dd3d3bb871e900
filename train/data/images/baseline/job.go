package baseline

import "image"

// job is what a kernel needs to know. C has the same struct, bl_job; all numbers are 32 bits wide.
type job struct {
	w, h, comps, hs, vs, restart, isa int32
	x0, y0, x1, y1                    int32 // the region
	dc, ac                            [3]int32
	c                                 [3]plane
	lines                             int32
	quant                             [3][64]uint16
}

// plane is a component's part of the scratch memory.
type plane struct {
	col0, col1, row0, row1 int32 // blocks that are wanted
	w, h                   int32 // samples of the component
	at                     int32
}

// set plans a region. It returns the size of the scratch memory.
func (j *job) set(f *frame, r image.Rectangle) (scratch int) {
	*j = job{w: int32(f.w), h: int32(f.h), comps: int32(f.comps), hs: int32(f.hs), vs: int32(f.vs), restart: int32(f.restart),
		x0: int32(r.Min.X), y0: int32(r.Min.Y), x1: int32(r.Max.X), y1: int32(r.Max.Y)}
	for i := range f.comps {
		j.dc[i], j.ac[i] = int32(f.dc[i]), int32(f.ac[i])
		j.quant[i] = f.quantTable[f.quant[i]]
		hs, vs := 1, 1
		if i > 0 {
			hs, vs = f.hs, f.vs
		}
		c := &j.c[i]
		c.w, c.h = int32((f.w+hs-1)/hs), int32((f.h+vs-1)/vs)
		c.col0, c.col1 = blocks(r.Min.X, r.Max.X, hs, int(c.w))
		c.row0, c.row1 = blocks(r.Min.Y, r.Max.Y, vs, int(c.h))
		c.at = int32(scratch)
		scratch += 64 * int(c.col1-c.col0) * int(c.row1-c.row0)
	}
	scratch += 64 // the last pixels are read 16 at a time
	j.lines = int32(scratch)
	n := r.Dx()
	return scratch + 2*(n+129) + 2*(n/2+8) + 64
}

// blocks is the range of blocks that has the samples for the pixels from a to b of one axis; smooth chroma needs one more on each side.
func blocks(a, b, s, n int) (from, to int32) {
	lo, hi := a, b-1
	if s == 2 {
		lo, hi = max(0, a/2-1), min(n-1, (b-1)/2+1)
	}
	return int32(lo / 8), int32(hi/8 + 1)
}

// mcus returns how many MCUs are across, how many there are in all, and how many must be read for the region.
func (j *job) mcus() (across, all, needed int64) {
	across = (int64(j.w) + 8*int64(j.hs) - 1) / (8 * int64(j.hs))
	down := (int64(j.h) + 8*int64(j.vs) - 1) / (8 * int64(j.vs))
	last := int64(0)
	for i := range j.comps {
		rows := int64(j.c[i].row1)
		if i == 0 {
			rows = (rows + int64(j.vs) - 1) / int64(j.vs)
		}
		last = max(last, rows)
	}
	return across, across * down, across * min(last, down)
}
