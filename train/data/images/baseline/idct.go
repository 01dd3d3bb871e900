package baseline

// flat fills a block whose coefficients but the first are 0.
func flat(dc int16, dst []byte, stride int) {
	v := clip((int32(dc)+4)>>3 + 128)
	for y := range 8 {
		row := dst[y*stride:][:8]
		for x := range row {
			row[x] = v
		}
	}
}

func clip(v int32) byte { return byte(max(0, min(255, v))) }

// idct is the inverse DCT of libjpeg ("islow"): coefficients in natural order, times quant, become samples.
func idct(coef *[64]int16, quant *[64]uint16, dst []byte, stride int) {
	var v [64]int32
	for i := range v {
		v[i] = int32(coef[i] * int16(quant[i])) // 16 bits, as in the vectors of libjpeg-turbo
	}
	for i := range 8 {
		transform(v[i:], 8, 11)
	}
	for y := range 8 {
		transform(v[8*y:], 1, 18)
		row := dst[y*stride:][:8]
		for x := range row {
			row[x] = clip(v[8*y+x] + 128)
		}
	}
}

// transform is the one-dimensional transform (Loeffler, Ligtenberg, Moschytz, ICASSP 1989) of eight numbers that lie step apart, in 13-bit fixed point;
// results are divided by 2^bits, rounded.
func transform(v []int32, step, bits int) {
	v0, v1, v2, v3, v4, v5, v6, v7 := v[0], v[step], v[2*step], v[3*step], v[4*step], v[5*step], v[6*step], v[7*step]
	z1 := (v2 + v6) * 4433
	t2, t3 := z1-v6*15137, z1+v2*6270
	t0, t1 := (v0+v4)<<13, (v0-v4)<<13
	a0, a3, a1, a2 := t0+t3, t0-t3, t1+t2, t1-t2

	y1, y2, y3, y4 := v7+v1, v5+v3, v7+v3, v5+v1
	y5 := (y3 + y4) * 9633
	y1, y2, y3, y4 = y1*-7373, y2*-20995, y3*-16069+y5, y4*-3196+y5
	o0, o1, o2, o3 := v7*2446+y1+y3, v5*16819+y2+y4, v3*25172+y2+y3, v1*12299+y1+y4

	half := int32(1) << (bits - 1)
	v[0], v[7*step] = (a0+o3+half)>>bits, (a0-o3+half)>>bits
	v[step], v[6*step] = (a1+o2+half)>>bits, (a1-o2+half)>>bits
	v[2*step], v[5*step] = (a2+o1+half)>>bits, (a2-o1+half)>>bits
	v[3*step], v[4*step] = (a3+o0+half)>>bits, (a3-o0+half)>>bits
}
