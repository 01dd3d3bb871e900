package tcp

import (
	"encoding/binary"
	"fmt"
)

const (
	headerBytes = 32
	pieceBytes  = 128 << 10 // of memory behind one header; the size of a stage too, of which several should fit into the second-level cache
	textBytes   = 4 << 10   // of a reason
)

// Phases of a frame.
const (
	phaseExchange uint16 = iota // the whole of a rank's memory, to be reduced
	phaseScatter                // a part, to be reduced
	phaseGather                 // data that stay as they are
	phaseLane                   // Send and Recv; see lane.go
	phaseControl                // about the connection
	phases
)

// What a frame of phaseLane or phaseControl is: the header's algorithm.
const (
	laneAsk  uint16 = iota // the sender has a message
	laneCome               // the receiver has made its call: the data may come
	laneData
	laneKinds
)

const (
	controlBye   uint16 = iota // the sender closed its communicator in order
	controlAbort               // the group is broken; the payload is the reason, key the rank that caused it
	controlKinds
)

// header precedes every piece. On the wire it is little endian, in the order of the fields.
type header struct {
	length    uint32 // of the payload
	number    uint32 // of the collective, from 1 in every group; of a message of a lane
	key       uint64 // comm.Call.Key
	elems     uint64
	phase     uint16
	algorithm uint16
	piece     uint32 // index among those of the call for the same receiver
}

func (h *header) put(b *[headerBytes]byte) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], h.length)
	le.PutUint32(b[4:], h.number)
	le.PutUint64(b[8:], h.key)
	le.PutUint64(b[16:], h.elems)
	le.PutUint16(b[24:], h.phase)
	le.PutUint16(b[26:], h.algorithm)
	le.PutUint32(b[28:], h.piece)
}

// parse decodes a header and refuses one that no rank sends.
func (h *header) parse(b *[headerBytes]byte) error {
	le := binary.LittleEndian
	*h = header{
		length: le.Uint32(b[0:]), number: le.Uint32(b[4:]), key: le.Uint64(b[8:]), elems: le.Uint64(b[16:]),
		phase: le.Uint16(b[24:]), algorithm: le.Uint16(b[26:]), piece: le.Uint32(b[28:]),
	}
	longest := uint32(pieceBytes)
	ok := h.phase < phases && h.elems < 1<<63
	switch {
	case h.phase == phaseLane:
		ok = ok && h.algorithm < laneKinds
		if h.algorithm != laneData {
			longest = 0
		}
	case h.phase == phaseControl:
		ok = ok && h.algorithm < controlKinds
		longest = textBytes
		if h.algorithm == controlBye {
			longest = 0
		}
	}
	if !ok || h.length > longest {
		return fmt.Errorf("a frame that makes no sense: %x", b[:])
	}
	return nil
}
