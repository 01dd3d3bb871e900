package telemetry

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is CRC-32C, rotated and offset, as in TFRecord files: a CRC of data that contain CRCs would otherwise be weak.
func maskedCRC(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// appendRecord frames a payload: length, its checksum, payload, its checksum.
func appendRecord(b, payload []byte) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, maskedCRC(b[at:at+8]))
	b = append(b, payload...)
	return binary.LittleEndian.AppendUint32(b, maskedCRC(payload))
}

// The wire format of protocol buffers, as far as events need it: a key made of field number and wire type, then a varint (0), 8 bytes (1), a length
// and bytes (2), or 4 bytes (5).

func protoVarint(b []byte, field int, v uint64) []byte {
	b = binary.AppendUvarint(b, uint64(field)<<3)
	return binary.AppendUvarint(b, v)
}

func protoFixed64(b []byte, field int, v uint64) []byte {
	b = binary.AppendUvarint(b, uint64(field)<<3|1)
	return binary.LittleEndian.AppendUint64(b, v)
}

func protoBytes(b []byte, field int, v []byte) []byte {
	b = binary.AppendUvarint(b, uint64(field)<<3|2)
	b = binary.AppendUvarint(b, uint64(len(v)))
	return append(b, v...)
}

func protoString(b []byte, field int, v string) []byte { return protoBytes(b, field, []byte(v)) }

func protoFixed32(b []byte, field int, v uint32) []byte {
	b = binary.AppendUvarint(b, uint64(field)<<3|5)
	return binary.LittleEndian.AppendUint32(b, v)
}
