package data

import "math/bits"

// permutation is a pseudo-random bijection of 0…n-1 that needs no table: a Feistel network over the smallest power of two that
// holds n, iterated until the result is below n (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). One look-up takes a few
// tens of nanoseconds for any n, so any position of any epoch can be read without shuffling.
type permutation struct {
	n            uint64
	loBits, half uint   // width of the right half; width of the left one
	loMask       uint64 // masks of both
	hiMask       uint64
	keys         [feistelRounds]uint64
}

// Eight rounds: for large halves, four make a Feistel network a good pseudo-random permutation (Luby and Rackoff 1988); tiny
// sets have halves of one or two bits and need more.
const feistelRounds = 8

// newPermutation keys the bijection. The unshuffled order is a nil pointer.
func newPermutation(n int, seed uint64, epoch int) *permutation {
	p := makePermutation(n, seed, epoch)
	return &p
}

func makePermutation(n int, seed uint64, epoch int) permutation {
	width := max(2, uint(bits.Len64(uint64(max(n, 1)-1))))
	p := permutation{n: uint64(n), loBits: (width + 1) / 2, half: width / 2}
	p.loMask, p.hiMask = 1<<p.loBits-1, 1<<p.half-1
	r := Rand{mix64(mix64(seed^0x5eed0fa11ba7c4e5) ^ uint64(epoch)*0xd1342543de82ef95 + golden)}
	for i := range p.keys {
		p.keys[i] = r.Uint64()
	}
	return p
}

// at returns the image of i, 0 ≤ i < n.
func (p *permutation) at(i int) int {
	if p == nil {
		return i
	}
	x := uint64(i)
	for {
		lo, hi := x&p.loMask, x>>p.loBits
		// An unbalanced network: the halves keep their widths and alternate.
		for k := 0; k < feistelRounds; k += 2 {
			hi ^= mix64(lo^p.keys[k]) >> 32 & p.hiMask
			lo ^= mix64(hi^p.keys[k+1]) >> 32 & p.loMask
		}
		if x = hi<<p.loBits | lo; x < p.n {
			return int(x)
		}
	}
}
