package nodes

import (
	"encoding/binary"
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
)

// A head is what a rank says of its call: the call, its number, and the rank. It is the same on every machine: little endian.
//
//	u64 Call.Key   i64 Call.Elems   u32 number   u32 rank
const headBytes = 24

type head struct {
	key    uint64
	elems  int64
	number uint32
	rank   uint32
}

func headOf(what comm.Call, number int64, rank int) head {
	return head{what.Key(), what.Elems, uint32(number), uint32(rank)}
}

func (h head) put(b []byte) {
	binary.LittleEndian.PutUint64(b, h.key)
	binary.LittleEndian.PutUint64(b[8:], uint64(h.elems))
	binary.LittleEndian.PutUint32(b[16:], h.number)
	binary.LittleEndian.PutUint32(b[20:], h.rank)
}

func readHead(b []byte) head {
	return head{binary.LittleEndian.Uint64(b), int64(binary.LittleEndian.Uint64(b[8:])), binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint32(b[20:])}
}

// same reports whether two ranks make the same call.
func (h head) same(o head) bool { return h.key == o.key && h.elems == o.elems }

// String is the call with its number.
func (h head) String() string {
	if h.key == chainCall(nil).Key() {
		return fmt.Sprintf("chain #%d", h.number)
	}
	if h.key == branchCall.Key() {
		return fmt.Sprintf("branch #%d", h.number)
	}
	return comm.CallOf(h.key, h.elems).Number(int64(h.number))
}

// differs is what the first rank with another call does to a call.
func (h head) differs(o head) *comm.MismatchError {
	return &comm.MismatchError{Rank: int(h.rank), Peer: int(o.rank), Mine: h.String(), Its: o.String()}
}
