package tokenizer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// message walks over the fields of a protocol-buffer message (https://protobuf.dev/programming-guides/encoding/).
type message []byte

// pbField is one field; which value counts depends on the wire type.
type pbField struct {
	num   uint64
	wire  uint64
	uint  uint64
	bytes []byte
}

var errTruncated = errors.New("protocol buffer: the message is truncated")

// next takes one field off the message.
func (m *message) next() (f pbField, err error) {
	tag, err := m.varint()
	if err != nil {
		return f, err
	}
	f.num, f.wire = tag>>3, tag&7
	if f.num == 0 {
		return f, errors.New("protocol buffer: field number 0")
	}
	switch f.wire {
	case 0:
		f.uint, err = m.varint()
	case 1:
		if f.bytes, err = m.take(8); err == nil {
			f.uint = binary.LittleEndian.Uint64(f.bytes)
		}
	case 2:
		var n uint64
		if n, err = m.varint(); err == nil {
			f.bytes, err = m.take(n)
		}
	case 5:
		if f.bytes, err = m.take(4); err == nil {
			f.uint = uint64(binary.LittleEndian.Uint32(f.bytes))
		}
	default:
		err = fmt.Errorf("protocol buffer: wire type %d of field %d", f.wire, f.num)
	}
	return f, err
}

func (m *message) varint() (uint64, error) {
	v, n := binary.Uvarint(*m)
	if n <= 0 {
		return 0, errTruncated
	}
	*m = (*m)[n:]
	return v, nil
}

func (m *message) take(n uint64) ([]byte, error) {
	if n > uint64(len(*m)) {
		return nil, errTruncated
	}
	b := (*m)[:n]
	*m = (*m)[n:]
	return b, nil
}

// each calls do for every field. do looks at the numbers it knows; expect checks their wire types.
func (m message) each(do func(f pbField) error) error {
	for len(m) > 0 {
		f, err := m.next()
		if err != nil {
			return err
		}
		if err := do(f); err != nil {
			return err
		}
	}
	return nil
}

func (f pbField) expect(wire uint64) error {
	if f.wire != wire {
		return fmt.Errorf("protocol buffer: field %d has wire type %d, want %d", f.num, f.wire, wire)
	}
	return nil
}

func (f pbField) bool(dst *bool) error {
	*dst = f.uint != 0
	return f.expect(0)
}

func (f pbField) string(dst *string) error {
	*dst = string(f.bytes)
	return f.expect(2)
}

func (f pbField) float(dst *float32) error {
	*dst = math.Float32frombits(uint32(f.uint))
	return f.expect(5)
}
