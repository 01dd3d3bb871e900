package baseline

func (inGo) color(j *job, planes, rgb []byte) {
	n := int(j.x1 - j.x0)
	up := [2][]byte{make([]byte, n+2), make([]byte, n+2)}
	for y := int(j.y0); y < int(j.y1); y++ {
		var row [3][]byte
		for c := range int(j.comps) {
			p := &j.c[c]
			vs := 1
			if c > 0 {
				vs = int(j.vs)
			}
			at := func(y int) []byte { return planes[int(p.at)+(y-int(p.row0)*8)*int(p.col1-p.col0)*8:] }
			near := at(y / vs)
			if c == 0 || j.hs == 1 {
				row[c] = near[int(j.x0-p.col0*8):][:n]
				continue
			}
			row[c] = up[c-1][:n]
			if vs == 1 {
				j.spread(p, near, near, 1, 2, 2, row[c])
				continue
			}
			far := y/2 - 1
			if y&1 == 1 {
				far = y/2 + 1
			}
			j.spread(p, near, at(max(0, min(far, int(p.h)-1))), 8, 7, 4, row[c])
		}
		out := rgb[:3*n]
		rgb = rgb[3*n:]
		if j.comps == 1 {
			for i, v := range row[0] {
				out[3*i], out[3*i+1], out[3*i+2] = v, v, v
			}
			continue
		}
		toRGB(row[0], row[1], row[2], out)
	}
}

// spread interpolates a row of chroma of half the width: the nearer sample counts 3/4, the other 1/4, and so do near and far where they differ. Then sums are
// divided by 16, else by 4. even and odd are what is added before.
func (j *job) spread(p *plane, near, far []byte, even, odd int32, shift int, out []byte) {
	left := int(p.col0) * 8
	weighted := func(i int) int32 {
		i = max(0, min(i, int(p.w)-1)) - left
		if shift == 2 {
			return int32(near[i])
		}
		return 3*int32(near[i]) + int32(far[i])
	}
	for k := range out {
		x := int(j.x0) + k
		if i := x / 2; x&1 == 0 {
			out[k] = byte((3*weighted(i) + weighted(i-1) + even) >> shift)
		} else {
			out[k] = byte((3*weighted(i) + weighted(i+1) + odd) >> shift)
		}
	}
}

// toRGB is the conversion of JFIF in 16-bit fixed point.
func toRGB(y, cb, cr, out []byte) {
	const half = 1 << 15
	for i := range y {
		l, b, r := int32(y[i]), int32(cb[i])-128, int32(cr[i])-128
		out[3*i] = clip(l + (91881*r+half)>>16)
		out[3*i+1] = clip(l + (-22554*b-46802*r+half)>>16)
		out[3*i+2] = clip(l + (116130*b+half)>>16)
	}
}
