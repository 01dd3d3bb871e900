package tcp

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
	"golang.org/x/sys/unix"
)

func TestHeader(t *testing.T) {
	want := header{length: 1234, number: 7, key: comm.Call{Kind: comm.Reduce, Root: 3}.Key(), elems: 99, phase: phaseGather, algorithm: 2, piece: 5}
	var b [headerBytes]byte
	want.put(&b)
	if !bytes.Equal(b[:8], []byte{0xd2, 4, 0, 0, 7, 0, 0, 0}) || !bytes.Equal(b[24:], []byte{2, 0, 2, 0, 5, 0, 0, 0}) {
		t.Errorf("% x", b)
	}
	var got header
	if err := got.parse(&b); err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
	for name, h := range map[string]header{
		"long":      {length: pieceBytes + 1},
		"phase":     {phase: phases},
		"elements":  {elems: 1 << 63},
		"long ask":  {phase: phaseLane, algorithm: laneAsk, length: 1},
		"lane":      {phase: phaseLane, algorithm: laneKinds},
		"long bye":  {phase: phaseControl, algorithm: controlBye, length: 1},
		"long text": {phase: phaseControl, algorithm: controlAbort, length: textBytes + 1},
	} {
		h.put(&b)
		if got.parse(&b) == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// stranger is one end of a group of two whose other end is the test.
func stranger(t testing.TB) (c *Comm, fd int) {
	t.Helper()
	h, err := newHub(2, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	c = newComm(Config{Control: &seat{h: h, rank: 0}, Ranks: []int{0, 1}, Streams: 1, Link: &localLink}, 0)
	if c.bell, err = newBell(); err != nil {
		t.Fatal(err)
	}
	whole, mem, err := mapMemory(pieceBytes)
	if err != nil {
		t.Fatal(err)
	}
	c.mem = whole
	c.peers[1].stage = addressOf(mem)
	c.peers[1].lines = []*line{{p: c.peers[1], fd: pair[0]}}
	c.goodbye = func() { h.leave(0); h.leave(1) }
	c.settle(make([]settings, 2))
	c.crossover, c.calls, c.number = 64<<10, 1, 0
	c.wg.Add(2)
	go c.worker()
	go c.guard()
	return c, pair[1]
}

// FuzzStream has a peer send anything. A call may fail; memory outside the spans of the calls stays as it is.
func FuzzStream(f *testing.F) {
	frame := func(h header, n int) []byte {
		var b [headerBytes]byte
		h.length = uint32(n)
		h.put(&b)
		return append(b[:], make([]byte, n)...)
	}
	small, large := comm.Call{Kind: comm.AllReduce, DType: npu.F32, Elems: 100}, comm.Call{Kind: comm.AllReduce, DType: npu.F32, Elems: 50000}
	one := frame(header{number: 1, key: small.Key(), elems: 100}, 400)
	f.Add(uint8(0), one)
	f.Add(uint8(0), one[:100])
	mesh := func(piece uint32, phase uint16, n int) []byte {
		return frame(header{number: 1, key: large.Key(), elems: 50000, algorithm: direct, piece: piece, phase: phase}, n)
	}
	f.Add(uint8(1), append(mesh(0, phaseScatter, 99968), mesh(1, phaseGather, 100032)...))
	f.Add(uint8(1), mesh(7, phaseGather, 5))
	f.Add(uint8(0), append(frame(header{number: 0}, 77), one...)) // of a call that is over
	f.Add(uint8(0), append(frame(header{number: 1, key: 3, elems: 100}, 9), one...))
	message := comm.Call{Kind: comm.Send, DType: npu.F32, Elems: 100}
	ask := frame(header{number: 1, key: message.Key(), elems: 100, phase: phaseLane, algorithm: laneAsk}, 0)
	data := frame(header{number: 1, key: message.Key(), elems: 100, phase: phaseLane, algorithm: laneData}, 400)
	f.Add(uint8(2), append(append(bytes.Clone(ask), data...), one...))
	f.Add(uint8(2), append(append(frame(header{number: 2, key: small.Key(), elems: 100}, 400), ask...), data...)) // parked
	f.Add(uint8(2), append(bytes.Clone(ask), ask...))
	f.Add(uint8(0), frame(header{phase: phaseControl, algorithm: controlAbort, key: 1}, 20))
	f.Add(uint8(2), frame(header{phase: phaseControl, algorithm: controlBye}, 0))
	f.Fuzz(func(t *testing.T, what uint8, stream []byte) {
		c, fd := stranger(t)
		defer c.Close()
		go func() { // the socket may be full
			defer unix.Close(fd)
			for len(stream) > 0 {
				n, err := unix.Write(fd, stream)
				if err != nil {
					return
				}
				stream = stream[n:]
			}
			waste := make([]byte, 1<<20)
			_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 1000})
			for {
				if n, err := unix.Read(fd, waste); n <= 0 || err != nil {
					return
				}
			}
		}()
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		const guard = 4096
		memory := func(n int) (whole []byte, m comm.Mem) {
			whole = bytes.Repeat([]byte{0xa5}, n+2*guard)
			return whole, comm.Host(whole[guard:guard+n], npu.F32)
		}
		n := 400
		if what&1 != 0 {
			n = 200000
		}
		a, m := memory(n)
		b, r := memory(400)
		var handles []comm.Handle
		if what&2 != 0 {
			if h, err := c.Recv(ctx, r, 1); err == nil {
				handles = append(handles, h)
			}
		}
		if h, err := c.AllReduce(ctx, m, comm.Sum); err == nil {
			handles = append(handles, h)
		}
		for _, h := range handles {
			select {
			case <-h.Done(): // a peer that leaves a call out is noticed by the deadline
			case <-time.After(20 * time.Second):
				t.Fatal("a call hangs")
			}
		}
		for _, whole := range [][]byte{a, b} {
			for _, g := range [][]byte{whole[:guard], whole[len(whole)-guard:]} {
				if !bytes.Equal(g, bytes.Repeat([]byte{0xa5}, guard)) {
					t.Fatal("memory outside the span was written")
				}
			}
		}
	})
}
