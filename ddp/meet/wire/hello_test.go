package wire

import (
	"strings"
	"testing"
)

func TestHandshake(t *testing.T) {
	h := Hello{Version: Version, Kind: Data, To: 2, World: 4, Rank: 3, Generation: 1, Stream: 7, Nonce: [32]byte{1}, Job: JobName(strings.Repeat("j", 400))}
	b := h.Append(nil)
	if n := len(b) + ProofSize; n != 256 {
		t.Errorf("the longest hello and proof have %d bytes, want 256", n)
	}
	got, n, err := ParseHello(b)
	got.Job = string(b[HelloSize:])
	if err != nil || n != MaxJob || got != h {
		t.Errorf("%+v, %d, %v", got, n, err)
	}
	nonce, token := make([]byte, NonceSize), []byte("token")
	p := Proof(token, b, nonce)
	if !Proved(p, token, b, nonce) {
		t.Error("the right proof is refused")
	}
	other := append([]byte{1}, nonce[1:]...)
	if Proved(p, []byte("other"), b, nonce) || Proved(p, token, b[1:], nonce) || Proved(p, token, b, other) || Proved(nil, token, b, nonce) {
		t.Error("a wrong proof is accepted")
	}
	a := AppendAccept(nil, Accepted, "", token, b, nonce)
	if Signed(p, Accepted, "", token, b, nonce) || !Signed(a[AcceptHead:], Accepted, "", token, b, nonce) {
		t.Error("the client's proof must not serve as the server's")
	}
	if Signed(a[AcceptHead:], WrongRank, "", token, b, nonce) || Signed(a[AcceptHead:], Accepted, "x", token, b, nonce) {
		t.Error("verdict and reason are not covered by the signature")
	}
}

func TestJobName(t *testing.T) {
	long := strings.Repeat("x", MaxJob)
	if JobName(long) != long || JobName("") != "" {
		t.Error("short ids change")
	}
	a, b := JobName(long+"a"), JobName(long+"b")
	if a == b || len(a) != MaxJob || len(b) != MaxJob {
		t.Errorf("%q and %q", a, b)
	}
}

func TestMayBegin(t *testing.T) {
	for text, want := range map[string]bool{"": true, "got": true, "gotrain\x00\x01": true, "GET / HTTP": false, "gotrain ": false, "\x16\x03\x01": false} {
		if MayBegin([]byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{"a\x1b[31mb\nc": "a.[31mb\nc", "\xff": ".", "äöü": "äöü", "12345678901": "1234567…", "1234567890": "1234567890"} {
		if got := Text(in, 10); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
