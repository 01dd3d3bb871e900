package llamafile

import "fmt"

// Hugging Face rotates the first half of a head against the second: channel i with i+d/2. Meta and llama2.c rotate neighbours: 2i with 2i+1. The
// weights differ only in the order of the rows of q_proj and k_proj within each head. Attention is a dot product of q with k, so the result is the
// same as long as both use the same order.

// interleavedRow returns the row in Meta's order that corresponds to row r in Hugging Face's, for heads of width d.
func interleavedRow(r, d int) int {
	head, j := r/d*d, r%d
	if j < d/2 {
		return head + 2*j
	}
	return head + 2*(j-d/2) + 1
}

// Permute reorders the rows of a q or k projection from Meta's order (neighbours are rotated) to Hugging Face's (halves are). src and dst are
// [heads·headDim, columns], row-major, and must not overlap. With grouped queries, heads is the number of key-value heads for k.
func Permute(dst, src []float32, heads, headDim int) error {
	return permute(dst, src, heads, headDim, func(to, from []float32) { copy(to, from) })
}

// Unpermute is the inverse of Permute: from Hugging Face's order to Meta's.
func Unpermute(dst, src []float32, heads, headDim int) error {
	return permute(src, dst, heads, headDim, func(from, to []float32) { copy(to, from) })
}

// permute maps rows between half-split and interleaved order.
func permute(halves, interleaved []float32, heads, headDim int, move func(half, inter []float32)) error {
	rows := heads * headDim
	if heads < 1 || headDim < 2 || headDim%2 != 0 || len(halves) != len(interleaved) || len(halves)%rows != 0 {
		return fmt.Errorf("llamafile: permute: %d and %d values are not %d heads of even width %d", len(halves), len(interleaved), heads, headDim)
	}
	cols := len(halves) / rows
	for r := range rows {
		at := interleavedRow(r, headDim) * cols
		move(halves[r*cols:(r+1)*cols], interleaved[at:at+cols])
	}
	return nil
}
