package augment

func init() {
	// Sharpness moves the pixels away from those of a smoothed picture, by the factor arg: 0 is smooth, 1 changes nothing, 2 is sharp.
	Register(Op{"Sharpness", sharpness})
}

// sharpness smooths with the kernel (1 1 1; 1 5 1; 1 1 1)/13; pixels at the border stay.
func sharpness(p *Pixels, s *Scratch, factor float64, _ [3]byte) {
	if p.W < 3 || p.H < 3 {
		return
	}
	old := s.copyOf(p)
	if native {
		sharpnessFast(p, old, factor)
		return
	}
	sharpnessPlain(p, old, factor)
}

func sharpnessPlain(p, old *Pixels, factor float64) {
	n := p.W * p.C
	var by [511]float32
	for d := range by {
		by[d] = float32(factor) * float32(d-255)
	}
	// Thirteenths, rounded: sums are never exactly halfway.
	var thirteenth [255*13 + 1]byte
	for i := range thirteenth {
		thirteenth[i] = byte((2*i + 13) / 26)
	}
	c := p.C
	for y := 1; y < p.H-1; y++ {
		up, mid, low := old.Row(y-1), old.Row(y), old.Row(y+1)
		out := p.Row(y)
		up, low, out = up[:n], low[:n], out[:n]
		for x := c; x < n-c; x++ {
			sum := int(up[x-c]) + int(up[x]) + int(up[x+c]) + int(mid[x-c]) + 5*int(mid[x]) + int(mid[x+c]) + int(low[x-c]) + int(low[x]) + int(low[x+c])
			soft := int(thirteenth[sum])
			out[x] = byte(clamp(int(float32(soft)+by[int(mid[x])-soft+255]), 0, 255))
		}
	}
}
