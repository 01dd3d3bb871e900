package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Kind is the kind of a frame on a control connection.
type Kind uint8

// The kinds of frames.
const (
	KindJoin     Kind = 1 + iota // rank → coordinator: who it is
	KindRoster                   // ← all have come
	KindRefuse                   // ← this job cannot start, with the reason
	KindWaiting                  // ← a sentence about who is missing
	KindBeat                     // → a sign of life
	KindDigest                   // ← the signs of life of all
	KindGather                   // → a contribution to an exchange
	KindGathered                 // ← those of all, or who is missing
	KindReport                   // → a rank failed, in the view of this one
	KindFault                    // ← the first cause
	KindLeave                    // → this rank leaves in order
	KindBye                      // ← it may go; from the coordinator: the job is over
	kinds
)

// FrameHead is the size of a frame's head.
const FrameHead = 8

// MaxFrame limits the payload of a frame.
const MaxFrame = 64 << 20

// AppendFrame appends a frame.
func AppendFrame(b []byte, k Kind, payload []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = append(b, byte(k), 0, 0, 0)
	return append(b, payload...)
}

// ParseHead parses the head of a frame.
func ParseHead(b []byte) (k Kind, length int, err error) {
	if len(b) < FrameHead {
		return 0, 0, io.ErrUnexpectedEOF
	}
	n := binary.LittleEndian.Uint32(b)
	if k = Kind(b[4]); k == 0 || k >= kinds || b[5] != 0 || b[6] != 0 || b[7] != 0 || n > MaxFrame {
		return 0, 0, fmt.Errorf("wire: % x is not the head of a frame", b[:FrameHead])
	}
	return k, int(n), nil
}

// ReadFrame reads one frame. Memory grows with the bytes that arrive, not with the length that the head announces.
func ReadFrame(r io.Reader) (k Kind, payload []byte, err error) {
	var head [FrameHead]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	k, n, err := ParseHead(head[:])
	if err != nil {
		return 0, nil, err
	}
	const step = 64 << 10
	for len(payload) < n {
		at := len(payload)
		payload = append(payload, make([]byte, min(step, n-at))...)
		if _, err = io.ReadFull(r, payload[at:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, nil, err
		}
	}
	return k, payload, nil
}
