package wire

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// ErrMalformed reports a payload that does not have the form of its kind.
var ErrMalformed = errors.New("wire: malformed message")

// reader takes a payload apart. After the first error everything is zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || r.bad {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 || r.bad {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// small returns a number between -1 and limit.
func (r *reader) small(limit int) int {
	v := r.int()
	if v < -1 || v > int64(limit) {
		r.bad = true
		return 0
	}
	return int(v)
}

// bytes returns a copy.
func (r *reader) bytes() []byte {
	n := r.uint()
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	v := append([]byte{}, r.b[:n]...)
	r.b = r.b[n:]
	return v
}

// text returns a text that is fit for a terminal.
func (r *reader) text() string { return Text(string(r.bytes()), maxText) }

// exact returns a text that is compared, never printed.
func (r *reader) exact() string { return string(r.bytes()) }

func (r *reader) bool() bool {
	v := r.uint()
	r.bad = r.bad || v > 1
	return v == 1
}

// count returns the number of entries that follow, each of at least size bytes.
func (r *reader) count(size int) int {
	n := r.uint()
	if r.bad || n > uint64(len(r.b)/size) {
		r.bad = true
		return 0
	}
	return int(n)
}

// ints returns a list of ranks.
func (r *reader) ints() []int {
	list := make([]int, r.count(1))
	for i := range list {
		list[i] = r.small(maxRank)
	}
	return list
}

func (r *reader) addr() netip.AddrPort {
	var a netip.AddrPort
	if err := a.UnmarshalBinary(r.bytes()); err != nil {
		r.bad = true
	}
	return a
}

// end returns an error if anything was wrong or is left over.
func (r *reader) end() error {
	if r.bad || len(r.b) > 0 {
		return ErrMalformed
	}
	return nil
}

const (
	maxText = 16 << 10
	maxRank = 1 << 20
)

func appendBytes(b, v []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(v))), v...) }

func appendText(b []byte, v string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendInts(b []byte, list []int) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, v := range list {
		b = binary.AppendVarint(b, int64(v))
	}
	return b
}

func appendAddr(b []byte, a netip.AddrPort) []byte {
	v, _ := a.MarshalBinary() // it never fails
	return appendBytes(b, v)
}
