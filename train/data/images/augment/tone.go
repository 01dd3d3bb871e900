package augment

// Operations that map the bytes of a channel by a table, with Pillow's rounding.
func init() {
	Register(Op{"Identity", func(*Pixels, *Scratch, float64, [3]byte) {}})
	// Invert has no argument.
	Register(Op{"Invert", table(func(_ float64, v int) int { return 255 - v })})
	// Posterize keeps arg bits of each byte, 1 to 8. (timm asks for none at its highest magnitude, which Pillow refuses; that is 1.)
	Register(Op{"Posterize", table(func(bits float64, v int) int { return v &^ (1<<(8-clamp(int(bits), 1, 8)) - 1) })})
	// Solarize inverts what is not below arg.
	Register(Op{"Solarize", table(func(threshold float64, v int) int {
		if float64(v) < threshold {
			return v
		}
		return 255 - v
	})})
	// SolarizeAdd adds arg to what is below 128.
	Register(Op{"SolarizeAdd", table(func(add float64, v int) int {
		if v < 128 {
			return v + int(add)
		}
		return v
	})})
	// Brightness multiplies by arg; 1 changes nothing.
	Register(Op{"Brightness", table(func(factor float64, v int) int { return blend(0, v, float32(factor)) })})
	Register(Op{"Contrast", contrast})
	Register(Op{"AutoContrast", autoContrast})
	Register(Op{"Equalize", equalize})
}

func clamp(v, lo, hi int) int { return max(lo, min(v, hi)) }

// blend is Pillow's: a value on the line through a (alpha 0) and b (alpha 1), cut off.
func blend(a, b int, alpha float32) int {
	return clamp(int(float32(a)+float32(alpha*float32(b-a))), 0, 255) // two roundings: without the conversion some processors make one
}

// table makes an operation of a function of a byte.
func table(f func(arg float64, v int) int) func(*Pixels, *Scratch, float64, [3]byte) {
	return func(p *Pixels, _ *Scratch, arg float64, _ [3]byte) {
		var t [256]byte
		for v := range t {
			t[v] = byte(clamp(f(arg, v), 0, 255))
		}
		mapAll(p.Pix, &t)
	}
}

func mapAll(pix []byte, t *[256]byte) {
	if mapFast(pix, t) {
		return
	}
	mapPlain(pix, t)
}

func mapPlain(pix []byte, t *[256]byte) {
	for len(pix) >= 8 {
		q := (*[8]byte)(pix)
		q[0], q[1], q[2], q[3] = t[q[0]], t[q[1]], t[q[2]], t[q[3]]
		q[4], q[5], q[6], q[7] = t[q[4]], t[q[5]], t[q[6]], t[q[7]]
		pix = pix[8:]
	}
	for i, v := range pix {
		pix[i] = t[v]
	}
}

// contrast moves all bytes away from the mean luminance, by the factor arg; 1 changes nothing.
func contrast(p *Pixels, _ *Scratch, factor float64, _ [3]byte) {
	sum, n := 0, p.W*p.H
	switch {
	case p.C != 3:
		for _, v := range p.Pix {
			sum += int(v)
		}
	case native && n > 0:
		sum = greySumFast(p)
	default:
		sum = greySumPlain(p)
	}
	mean := int(float64(sum)/float64(max(1, n)) + 0.5)
	var t [256]byte
	for v := range t {
		t[v] = byte(blend(mean, v, float32(factor)))
	}
	mapAll(p.Pix, &t)
}

func greySumPlain(p *Pixels) (sum int) {
	for pix := p.Pix; len(pix) >= 3; pix = pix[3:] {
		q := (*[3]byte)(pix)
		sum += grey(q[0], q[1], q[2])
	}
	return sum
}

// histograms counts the bytes of each channel.
func histograms(p *Pixels) (h [3][256]int) {
	if p.C == 1 {
		for _, v := range p.Pix {
			h[0][v]++
		}
		return h
	}
	var n [3][256]uint32
	for pix := p.Pix; len(pix) >= 3; pix = pix[3:] {
		q := (*[3]byte)(pix)
		n[0][q[0]]++
		n[1][q[1]]++
		n[2][q[2]]++
	}
	for c := range n {
		for v, k := range n[c] {
			h[c][v] = int(k)
		}
	}
	return h
}

// mapChannels applies a table to each channel.
func mapChannels(p *Pixels, t *[3][256]byte) {
	if p.C == 1 {
		mapAll(p.Pix, &t[0])
		return
	}
	if !mapChannelsFast(p, t) {
		mapChannelsPlain(p, t)
	}
}

func mapChannelsPlain(p *Pixels, t *[3][256]byte) {
	for pix := p.Pix; len(pix) >= 3; pix = pix[3:] {
		q := (*[3]byte)(pix)
		q[0], q[1], q[2] = t[0][q[0]], t[1][q[1]], t[2][q[2]]
	}
}

// autoContrast stretches each channel over all bytes.
func autoContrast(p *Pixels, _ *Scratch, _ float64, _ [3]byte) {
	h := histograms(p)
	var t [3][256]byte
	for c := range p.C {
		lo, hi := 0, 255
		for lo < 255 && h[c][lo] == 0 {
			lo++
		}
		for hi > 0 && h[c][hi] == 0 {
			hi--
		}
		scale, offset := 1.0, 0.0
		if hi > lo {
			scale = 255 / float64(hi-lo)
			offset = -float64(lo) * scale
		}
		for v := range t[c] {
			t[c][v] = byte(clamp(int(float64(float64(v)*scale)+offset), 0, 255)) // two roundings, as in Python
		}
	}
	mapChannels(p, &t)
}

// equalize makes the histogram of each channel flat.
func equalize(p *Pixels, _ *Scratch, _ float64, _ [3]byte) {
	h := histograms(p)
	var t [3][256]byte
	for c := range p.C {
		sum, last, kinds := 0, 0, 0
		for _, n := range h[c] {
			if n > 0 {
				sum, last, kinds = sum+n, n, kinds+1
			}
		}
		step := (sum - last) / 255
		n := step / 2
		for v := range t[c] {
			if kinds <= 1 || step == 0 {
				t[c][v] = byte(v)
				continue
			}
			t[c][v] = byte(min(255, n/step))
			n += h[c][v]
		}
	}
	mapChannels(p, &t)
}
