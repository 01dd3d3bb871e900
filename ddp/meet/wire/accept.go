package wire

import (
	"crypto/hmac"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
)

// Verdict is a server's answer to a client.
type Verdict uint8

// The verdicts. The reason beside a verdict is the sentence for the user.
const (
	Accepted      Verdict = iota
	WrongVersion          // of the protocol
	WrongJob              // another job
	WrongToken            // the proof is wrong
	WrongWorld            // another number of ranks
	WrongRank             // no such rank, or it is taken
	OldGeneration         // the job was restarted since
	NewGeneration         // an older generation has not ended yet: the client may try again
	WrongServer           // another rank or another kind of listener was called
	EarlierToken          // the proof is wrong, and this job has begun: it may be one that is about to end, and the client may try again
	verdicts
)

func (v Verdict) String() string {
	if v >= verdicts {
		return fmt.Sprintf("verdict %d", uint8(v))
	}
	return [...]string{"accepted", "wrong version", "wrong job", "wrong token", "wrong world", "wrong rank", "old generation", "new generation",
		"wrong server", "earlier token"}[v]
}

// AcceptHead is the size of an accept before its reason; MaxReason limits the reason.
const (
	AcceptHead = 3
	MaxReason  = 512
)

// AppendAccept appends a server's answer. Control characters of the reason are replaced, and too long a reason is cut.
func AppendAccept(b []byte, v Verdict, reason string, token, hello, nonce []byte) []byte {
	reason = Text(reason, MaxReason)
	b = append(b, byte(v))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(reason)))
	b = append(b, reason...)
	return append(b, sign(token, "server", hello, nonce, []byte{byte(v)}, []byte(reason))...)
}

// ParseAcceptHead parses the first AcceptHead bytes of an answer, and says how many bytes of the reason follow; behind them is the signature.
func ParseAcceptHead(b []byte) (v Verdict, reason int, err error) {
	if len(b) < AcceptHead {
		return 0, 0, ErrMagic
	}
	v, reason = Verdict(b[0]), int(binary.LittleEndian.Uint16(b[1:]))
	if v >= verdicts || reason > MaxReason {
		return 0, 0, ErrMagic
	}
	return v, reason, nil
}

// Signed reports whether an answer comes from a server that knows the token.
func Signed(signature []byte, v Verdict, reason string, token, hello, nonce []byte) bool {
	return hmac.Equal(signature, sign(token, "server", hello, nonce, []byte{byte(v)}, []byte(reason)))
}

// Text makes a text of another process fit for a terminal: at most limit bytes of valid UTF-8, without control characters but line ends.
func Text(s string, limit int) string {
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit-len("…")], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return '.'
		}
		return r
	}, strings.ToValidUTF8(s, "."))
}
