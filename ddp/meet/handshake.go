package meet

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// refusal is a server's verdict against this client.
type refusal struct {
	verdict wire.Verdict
	reason  string
	signed  bool // by a server that knows the job's token
}

func (r *refusal) Error() string { return r.reason }

// errForeign reports a server that accepts a client but cannot prove that it knows the token.
var errForeign = errors.New("the server there cannot prove that it belongs to this job")

// authenticate is the client's side of a handshake.
func authenticate(conn net.Conn, h wire.Hello, token []byte, limit time.Duration) error {
	conn.SetDeadline(time.Now().Add(limit))
	h.Version = wire.Version
	rand.Read(h.Nonce[:]) // never fails
	hello := h.Append(nil)
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	var nonce [wire.NonceSize]byte
	if _, err := io.ReadFull(conn, nonce[:]); err != nil {
		return err
	}
	if _, err := conn.Write(wire.Proof(token, hello, nonce[:])); err != nil {
		return err
	}
	head := make([]byte, wire.AcceptHead)
	if _, err := io.ReadFull(conn, head); err != nil {
		return err
	}
	v, n, err := wire.ParseAcceptHead(head)
	if err != nil {
		return err
	}
	rest := make([]byte, n+wire.ProofSize)
	if _, err := io.ReadFull(conn, rest); err != nil {
		return err
	}
	reason := string(rest[:n])
	signed := wire.Signed(rest[n:], v, reason, token, hello, nonce[:])
	switch {
	case v != wire.Accepted:
		return &refusal{v, wire.Text(reason, wire.MaxReason), signed}
	case !signed:
		return errForeign
	}
	return conn.SetDeadline(time.Time{})
}

// authenticator is what a server knows of the job when a client connects.
type authenticator struct {
	job        string // as wire.JobName returns it
	generation int
	token      []byte
	judge      func(h *wire.Hello) (wire.Verdict, string) // a client that has proved to belong to the job
	begun      func() bool                                // the job has begun, so it may be about to end; nil: no
}

// errSilent reports a client that closed the connection before it said anything.
var errSilent = errors.New("it closed the connection before it sent anything")

// answer is the server's side of a handshake. The caller has set a deadline. An error says why the client was refused.
func (a *authenticator) answer(conn net.Conn) (h wire.Hello, err error) {
	var buf [wire.HelloSize + wire.MaxJob]byte
	n := 0
	for n < wire.HelloSize { // a client that speaks something else is not waited for
		m, err := conn.Read(buf[n:wire.HelloSize])
		if n += m; !wire.MayBegin(buf[:n]) {
			return h, wire.ErrMagic
		}
		switch {
		case err == io.EOF && n == 0:
			return h, errSilent
		case err != nil && n < wire.HelloSize:
			return h, err
		}
	}
	h, job, err := wire.ParseHello(buf[:])
	if err != nil {
		return h, err
	}
	hello := buf[:wire.HelloSize+job]
	if _, err := io.ReadFull(conn, hello[wire.HelloSize:]); err != nil {
		return h, err
	}
	h.Job = string(hello[wire.HelloSize:])
	var nonce [wire.NonceSize]byte
	rand.Read(nonce[:])
	if _, err := conn.Write(nonce[:]); err != nil {
		return h, err
	}
	var proof [wire.ProofSize]byte
	if _, err := io.ReadFull(conn, proof[:]); err != nil {
		return h, err
	}
	v, reason := a.verdict(&h, wire.Proved(proof[:], a.token, hello, nonce[:]))
	if _, err := conn.Write(wire.AppendAccept(nil, v, reason, a.token, hello, nonce[:])); err != nil {
		return h, err
	}
	if v != wire.Accepted {
		return h, &refusal{v, reason, true}
	}
	return h, nil
}

// verdict decides on a client. What every client may know comes before the proof.
func (a *authenticator) verdict(h *wire.Hello, proved bool) (wire.Verdict, string) {
	switch {
	case h.Version != wire.Version:
		return wire.WrongVersion, fmt.Sprintf("rank %d speaks version %d of the protocol, this job version %d", h.Rank, h.Version, wire.Version)
	case h.Job != a.job:
		return wire.WrongJob, fmt.Sprintf("rank %d is of job %q, here is job %q", h.Rank, h.Job, a.job)
	case int64(h.Generation) < int64(a.generation):
		return wire.OldGeneration, fmt.Sprintf("generation %d is over: the job has been restarted, and is at generation %d", h.Generation, a.generation)
	case int64(h.Generation) > int64(a.generation):
		return wire.NewGeneration, fmt.Sprintf("generation %d has not begun: generation %d of the job still runs", h.Generation, a.generation)
	case !proved && a.begun != nil && a.begun():
		return wire.EarlierToken, fmt.Sprintf("rank %d has another token than job %q, which runs here", h.Rank, a.job)
	case !proved:
		return wire.WrongToken, fmt.Sprintf("rank %d has another token than job %q", h.Rank, a.job)
	}
	return a.judge(h)
}
