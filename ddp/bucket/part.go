package bucket

import "fmt"

// Piece is a range of elements of a parameter or of a bucket.
type Piece struct{ From, Elems int64 }

// Part returns the plan of part i of n equal parts of every bucket, for ranks that share the work on buckets. It has the same buckets and parameters; of each
// parameter it has the elements that lie in the part, which are told by parameter, too. A parameter of which none do has no place.
func (p *Plan) Part(i, n int) (*Plan, []Piece, error) {
	if n < 1 || i < 0 || i >= n {
		return nil, nil, fmt.Errorf("bucket: part %d of %d", i, n)
	}
	part := &Plan{Config: p.Config, Params: append([]Param(nil), p.Params...), where: append([]int(nil), p.where...)}
	pieces := make([]Piece, len(p.Params))
	for k := range p.Buckets {
		b := &p.Buckets[k]
		size := int64(b.DType.Size())
		if b.Elems%int64(n) != 0 {
			return nil, nil, fmt.Errorf("bucket: %d elements of bucket %d are not divisible by %d", b.Elems, k, n)
		}
		own := Bucket{DType: b.DType, Offset: part.Bytes, Bytes: b.Bytes / int64(n), Elems: b.Elems / int64(n), Ready: b.Ready}
		low, high := int64(i)*own.Bytes, int64(i+1)*own.Bytes
		for _, pl := range b.Places {
			from, to := max(pl.Offset, low), min(pl.Offset+pl.Bytes, high)
			q := &part.Params[pl.Param]
			q.Elems, q.Bytes = 0, 0
			if from >= to {
				continue
			}
			q.Elems, q.Bytes = (to-from)/size, to-from
			pieces[pl.Param] = Piece{From: (from - pl.Offset) / size, Elems: q.Elems}
			own.Places = append(own.Places, Place{Param: pl.Param, Offset: from - low, Bytes: q.Bytes})
			own.Payload += q.Bytes
		}
		part.Bytes += align(own.Bytes, pageBytes)
		part.Buckets = append(part.Buckets, own)
	}
	return part, pieces, nil
}

// Gaps returns the elements of bucket k that belong to no parameter, as ranges. They hold zeros.
func (p *Plan) Gaps(k int) (gaps []Piece) {
	b := &p.Buckets[k]
	size, at := int64(b.DType.Size()), int64(0)
	for _, pl := range append(b.Places[:len(b.Places):len(b.Places)], Place{Offset: b.Bytes}) {
		if pl.Offset > at {
			gaps = append(gaps, Piece{From: at / size, Elems: (pl.Offset - at) / size})
		}
		at = pl.Offset + pl.Bytes
	}
	return gaps
}
