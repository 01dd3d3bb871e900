package wire

import (
	"bytes"
	"io"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// message parses a payload of any kind and returns its bytes again.
func message(k Kind, b []byte) (again []byte, value any, err error) {
	switch k {
	case KindJoin:
		v, err := ParseJoin(b)
		return v.Append(nil), v, err
	case KindRoster:
		v, err := ParseRoster(b)
		return v.Append(nil), v, err
	case KindBeat:
		v, err := ParseBeat(b)
		return v.Append(nil), v, err
	case KindDigest:
		v, err := ParseDigest(b, nil)
		return AppendDigest(nil, nil, v), v, err
	case KindGather:
		v, err := ParseGather(b)
		return v.Append(nil), v, err
	case KindGathered:
		v, err := ParseGathered(b)
		return v.Append(nil), v, err
	case KindReport, KindFault:
		v, err := ParseFault(b)
		return v.Append(nil), v, err
	}
	return nil, nil, ErrMalformed
}

// samples has a message of each kind that has a form.
func samples() map[Kind][]byte {
	m := Member{Rank: 3, Node: 1, LocalRank: -1, Host: "n2", Machine: "a/b", Addr: netip.MustParseAddrPort("10.0.0.2:41823"), PID: 7, Version: "v1",
		Device: "npu:3"}
	six := m
	six.Addr = netip.MustParseAddrPort("[fe80::1%eth0]:1")
	return map[Kind][]byte{
		KindJoin:     (&Join{Member: m, Network: "n", LocalWorld: 2, Nodes: -1, AtZero: true}).Append(nil),
		KindRoster:   (&Roster{Beat: 500_000, Members: []Member{m, six}}).Append(nil),
		KindBeat:     (&Beat{Calls: 12, Beats: 3, Work: "writing a checkpoint"}).Append(nil),
		KindDigest:   AppendDigest(nil, nil, []Pulse{{Beat: Beat{Calls: -1}}, {Silent: 4000, Left: true}}),
		KindGather:   (&Gather{Seq: 1, Key: "k", What: "link", Ranks: []int{0, 2}, Limit: 30000, Mine: []byte{1, 2}}).Append(nil),
		KindGathered: (&Gathered{Seq: 1, Missing: []int{}, All: [][]byte{{1}, {}}}).Append(nil),
		KindFault:    (&Fault{Rank: 5, Host: "n2", Reason: "killed", Own: true}).Append(nil),
	}
}

func TestMessagesComeBack(t *testing.T) {
	for k, b := range samples() {
		again, v, err := message(k, b)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("kind %d: %+v, %v", k, v, err)
		}
		for n := range b { // cut anywhere
			if _, v, err := message(k, b[:n]); err == nil {
				t.Errorf("kind %d cut to %d of %d bytes is %+v", k, n, len(b), v)
			}
		}
		if _, _, err := message(k, append(bytes.Clone(b), 0)); err == nil {
			t.Errorf("kind %d with a byte left over", k)
		}
	}
}

// Whatever arrives, a parser neither panics nor allocates without bound, and what it accepts means the same after another round.
func FuzzFrame(f *testing.F) {
	for k, b := range samples() {
		f.Add(AppendFrame(nil, k, b))
	}
	f.Add([]byte("\xff\xff\xff\x03\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		k, payload, err := ReadFrame(r)
		if err != nil {
			return
		}
		if again := AppendFrame(nil, k, payload); !bytes.Equal(again, b[:len(b)-r.Len()]) {
			t.Fatalf("frame % x comes back as % x", b, again)
		}
		once, v, err := message(k, payload)
		if err != nil {
			return
		}
		_, w, err := message(k, once)
		if err != nil || !reflect.DeepEqual(v, w) {
			t.Fatalf("%+v comes back as %+v, %v", v, w, err)
		}
	})
}

func FuzzHello(f *testing.F) {
	h := Hello{Version: Version, Kind: Control, World: 4, Rank: 3, Generation: 2, Stream: 1, Job: "j"}
	f.Add(h.Append(nil))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n" + strings.Repeat("x", 100)))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := ParseHello(b)
		if err != nil {
			return
		}
		if !MayBegin(b[:4]) {
			t.Fatal("MayBegin refuses a hello")
		}
		if len(b) < HelloSize+n {
			return
		}
		h.Job = string(b[HelloSize : HelloSize+n])
		if again := h.Append(nil); !bytes.Equal(again, b[:HelloSize+n]) {
			t.Fatalf("% x comes back as % x", b, again)
		}
	})
}

func FuzzAccept(f *testing.F) {
	f.Add(AppendAccept(nil, WrongRank, "two rank 3: host a and host b", []byte("t"), []byte("h"), []byte("n")))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, n, err := ParseAcceptHead(b)
		if err != nil || len(b) < AcceptHead+n+ProofSize {
			return
		}
		reason, signature := string(b[AcceptHead:AcceptHead+n]), b[AcceptHead+n:AcceptHead+n+ProofSize]
		if !Signed(signature, v, reason, []byte("t"), []byte("h"), []byte("n")) {
			return // a fuzzer finds no signature, but the seed has one
		}
		if again := AppendAccept(nil, v, reason, []byte("t"), []byte("h"), []byte("n")); !bytes.Equal(again, b[:AcceptHead+n+ProofSize]) {
			t.Fatalf("% x comes back as % x", b, again)
		}
	})
}

// A length that the head announces costs no memory until the bytes come.
func TestLongFrameThatNeverComes(t *testing.T) {
	head := []byte{0, 0, 0, 4, byte(KindGather), 0, 0, 0}
	if k, n, err := ParseHead(head); k != KindGather || n != MaxFrame || err != nil {
		t.Fatal(k, n, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := ReadFrame(bytes.NewReader(head)); err != io.ErrUnexpectedEOF {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes for a head alone", n)
	}
}
