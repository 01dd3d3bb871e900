package nputest

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

// place is the alignment of tensors: more than any device asks for, so that something lies between two tensors.
const place = 512

// arena is device memory that one case after the other uses, with its image in host memory that may be copied asynchronously.
type arena struct {
	dev   npu.Device
	s     npu.Stream
	buf   npu.Buffer
	host  npu.Buffer // memory that may be copied asynchronously
	image []byte     // its bytes: what was last copied, either way
	used  int64
}

func newArena(dev npu.Device) (*arena, error) {
	s, err := dev.NewStream("nputest")
	if err != nil {
		return nil, err
	}
	return &arena{dev: dev, s: s}, nil
}

// free gives memory and stream back.
func (a *arena) free() error {
	a.s.Sync(context.Background()) // after an error work may be left over
	err := a.release()
	if e := a.s.Close(); err == nil {
		err = e
	}
	return err
}

func (a *arena) release() error {
	var err error
	for _, b := range []npu.Buffer{a.buf, a.host} {
		if b == nil {
			continue
		}
		if e := b.Free(); err == nil {
			err = e
		}
	}
	a.buf, a.host, a.image = nil, nil, nil
	return err
}

// reserve makes the arena large enough for all that was taken since used was 0.
func (a *arena) reserve() error {
	if a.buf != nil && a.buf.Bytes() >= a.used {
		return nil
	}
	if err := a.release(); err != nil {
		return err
	}
	n := max(2*a.used, 1<<20)
	var err error
	if a.buf, err = a.dev.Alloc(n); err != nil {
		return err
	}
	if a.host, err = npu.AllocHost(a.dev, n); err == nil {
		a.image = a.host.Host()
	}
	return err
}

// span is a range of the arena.
type span struct{ at, n int64 }

// take reserves n bytes, and room behind them.
func (a *arena) take(n int64) span {
	p := span{a.used, n}
	a.used += room(n)
	return p
}

// room is what n bytes take: there is always something behind them.
func room(n int64) int64 { return (n+place)/place*place + place }

func (a *arena) ptr(p span) npu.Ptr  { return npu.Ptr{Buf: a.buf, Off: p.at} }
func (a *arena) bytes(p span) []byte { return a.image[p.at:][:p.n] }

// spoil fills a range with the bits of NaN, whatever the type of float.
func (a *arena) spoil(p span) {
	for i := range a.bytes(p) {
		a.image[p.at+int64(i)] = 0xff
	}
}

// up copies the whole image to the device, down copies it back; both wait.
func (a *arena) up(ctx context.Context) error {
	if err := a.s.CopyIn(npu.Ptr{Buf: a.buf}, a.image[:a.used]); err != nil {
		return err
	}
	return a.s.Sync(ctx)
}

func (a *arena) down(ctx context.Context) error {
	if err := a.s.CopyOut(a.image[:a.used], npu.Ptr{Buf: a.buf}); err != nil {
		return err
	}
	return a.s.Sync(ctx)
}

// launch runs one bound kernel and waits.
func (a *arena) launch(ctx context.Context, l npu.Launch) error {
	if err := a.s.Run([]npu.Launch{l}); err != nil {
		return err
	}
	return a.s.Sync(ctx)
}

// changed returns the first byte outside the ranges that differs from before, or -1.
func (a *arena) changed(before []byte, mine []span) int64 {
	free := make([]bool, a.used)
	for _, p := range mine {
		for i := p.at; i < p.at+(p.n+63)/64*64; i++ { // a plan aligns tensors to 64 bytes
			free[i] = true
		}
	}
	if bytes.Equal(before, a.image[:a.used]) {
		return -1
	}
	for i, ok := range free {
		if !ok && before[i] != a.image[i] {
			return int64(i)
		}
	}
	return -1
}

// where names what lies at a byte of the arena.
func where(at int64, names map[string]span) string {
	best, name := int64(-1), "memory"
	for n, p := range names {
		if p.at <= at && p.at > best {
			best, name = p.at, n
		}
	}
	if p, ok := names[name]; ok && at >= p.at+p.n {
		return fmt.Sprintf("the memory %d bytes behind %s", at-p.at-p.n, name)
	}
	return name
}
