package bucket

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Fingerprint is a hash of all that must be equal on every rank: names, sizes, dtypes and groups in ready order, and
// every offset.
func (p *Plan) Fingerprint() string {
	h := sha256.New()
	for i := range p.Params {
		fmt.Fprintln(h, p.Describe(i))
	}
	for _, b := range p.Buckets {
		fmt.Fprintln(h, b.DType, b.Offset, b.Bytes, len(b.Places))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Describe is parameter i in words: what ranks compare one by one once fingerprints differ.
func (p *Plan) Describe(i int) string {
	q := p.Params[i]
	k, pl := p.Of(i)
	return fmt.Sprintf("%s %v[%d] %d bytes group %d at bucket %d + %d", q.Name, q.DType, q.Elems, q.Bytes, q.Group, k, pl.Offset)
}

// String is a table of the buckets for people.
func (p *Plan) String() string {
	var s strings.Builder
	for k, b := range p.Buckets {
		fmt.Fprintf(&s, "bucket %d: %v, %d bytes (%d of gradients), %d parameters: %s\n", k, b.DType, b.Bytes, b.Payload, len(b.Places), p.Title(k))
	}
	return s.String()
}
