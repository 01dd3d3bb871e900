package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// Version is the version of the protocol.
const Version = 2

// magic begins every connection.
const magic = "gotrain\x00"

// The kinds of connections.
const (
	Control = 1 // to the coordinator
	Data    = 2 // to another rank
)

// Sizes of the parts of a handshake.
const (
	HelloSize = 66 // hello without the job
	NonceSize = 32
	ProofSize = sha256.Size
	MaxJob    = 256 - HelloSize - ProofSize // a server reads at most 256 bytes before the proof is checked
)

// Hello is what a client says first.
type Hello struct {
	Version    uint16
	Kind       uint16
	To         uint32 // the rank that is called
	World      uint32
	Rank       uint32
	Generation uint32
	Stream     uint32
	Nonce      [NonceSize]byte
	Job        string // as JobName returns it
}

// ErrMagic reports that the other side is not gotrain.
var ErrMagic = errors.New("wire: it does not speak gotrain's protocol")

// JobName returns the form in which a job's id travels: ids that are too long are shortened, and stay different.
func JobName(job string) string {
	if len(job) <= MaxJob {
		return job
	}
	sum := sha256.Sum256([]byte(job))
	tail := "#" + hex.EncodeToString(sum[:16])
	return job[:MaxJob-len(tail)] + tail
}

// Append appends the bytes of the hello.
func (h *Hello) Append(b []byte) []byte {
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint16(b, h.Version)
	b = binary.LittleEndian.AppendUint16(b, h.Kind)
	for _, v := range []uint32{h.To, h.World, h.Rank, h.Generation, h.Stream} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = append(b, h.Nonce[:]...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(h.Job)))
	return append(b, h.Job...)
}

// ParseHello parses the first HelloSize bytes, and says how many bytes of the job follow. The error is ErrMagic, or that the job is too long.
func ParseHello(b []byte) (h Hello, job int, err error) {
	if len(b) < HelloSize || string(b[:len(magic)]) != magic {
		return h, 0, ErrMagic
	}
	le := binary.LittleEndian
	h.Version, h.Kind = le.Uint16(b[8:]), le.Uint16(b[10:])
	h.To, h.World, h.Rank, h.Generation, h.Stream = le.Uint32(b[12:]), le.Uint32(b[16:]), le.Uint32(b[20:]), le.Uint32(b[24:]), le.Uint32(b[28:])
	copy(h.Nonce[:], b[32:])
	if job = int(le.Uint16(b[64:])); job > MaxJob {
		return h, 0, fmt.Errorf("wire: a job id of %d bytes, the limit is %d", job, MaxJob)
	}
	return h, job, nil
}

// MayBegin reports whether b can be the beginning of a hello: a server need not wait for more from a client that speaks something else.
func MayBegin(b []byte) bool {
	n := min(len(b), len(magic))
	return string(b[:n]) == magic[:n]
}

// Proof returns what the client answers to a challenge. hello are the bytes of its hello.
func Proof(token, hello, nonce []byte) []byte { return sign(token, "client", hello, nonce) }

// Proved reports whether a proof is right.
func Proved(proof, token, hello, nonce []byte) bool {
	return hmac.Equal(proof, Proof(token, hello, nonce))
}

func sign(token []byte, who string, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, token)
	m.Write([]byte(who))
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}
