package bucket

import (
	"fmt"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// The parts of a plan have every element of every parameter once, where it lies in the bucket.
func TestPart(t *testing.T) {
	var params []Param
	for i, n := range []int64{5000, 3, 77, 1, 70000, 33} {
		params = append(params, Param{Name: fmt.Sprint(i), Elems: n, DType: npu.F32, Group: i % 2})
	}
	p, err := New(params, Config{CapBytes: 64 << 10, FirstBytes: 8 << 10, World: 6})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, 3, 6} {
		seen := make([][]bool, len(params))
		for i, q := range params {
			seen[i] = make([]bool, q.Elems)
		}
		for i := range n {
			part, pieces, err := p.Part(i, n)
			if err != nil {
				t.Fatal(err)
			}
			for k, b := range part.Buckets {
				payload := int64(0)
				for _, pl := range b.Places {
					payload += pl.Bytes
					piece := pieces[pl.Param]
					_, whole := p.Of(pl.Param)
					if got, want := int64(i)*b.Bytes+pl.Offset, whole.Offset+4*piece.From; got != want || pl.Bytes != 4*piece.Elems {
						t.Fatalf("part %d of %d: parameter %d begins at %d of bucket %d, want %d", i, n, pl.Param, got, k, want)
					}
					for j := range piece.Elems {
						if seen[pl.Param][piece.From+j] {
							t.Fatalf("element %d of parameter %d is in two parts", piece.From+j, pl.Param)
						}
						seen[pl.Param][piece.From+j] = true
					}
				}
				if b.Payload != payload || b.Bytes*int64(n) != p.Buckets[k].Bytes || part.Title(k) != p.Title(k) && len(b.Places) > 0 && n == 1 {
					t.Fatalf("bucket %d of part %d: %+v", k, i, b)
				}
			}
		}
		for i := range seen {
			for j, ok := range seen[i] {
				if !ok {
					t.Fatalf("%d parts: element %d of parameter %d is in none", n, j, i)
				}
			}
		}
	}
	for k, b := range p.Buckets {
		covered := make([]int, b.Elems)
		for _, pl := range b.Places {
			for j := pl.Offset / 4; j < (pl.Offset+pl.Bytes)/4; j++ {
				covered[j]++
			}
		}
		for _, g := range p.Gaps(k) {
			for j := range g.Elems {
				covered[g.From+j]++
			}
		}
		for j, n := range covered {
			if n != 1 {
				t.Fatalf("bucket %d: element %d is %d times in a parameter or gap", k, j, n)
			}
		}
	}
	if _, _, err := p.Part(3, 3); err == nil {
		t.Error("part 3 of 3")
	}
	if _, _, err := p.Part(0, 7); err == nil {
		t.Error("buckets for 6 ranks in 7 parts")
	}
}
