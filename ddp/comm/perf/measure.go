package perf

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Row is one size.
type Row struct {
	Bytes, Elems     int64
	Repeat           int
	Median, Min, P99 time.Duration // of the slowest rank
	Size             int           // ranks
	Wrong            int64         // elements, over all ranks and repetitions
	First            string        // what is wrong first on this rank; "" if nothing is
	Algorithm        string        // of the outermost level; "" if the transport does not tell
	kind             comm.Kind
}

// Way is a level of the transport during the calls of a row.
type Way struct {
	Transport string
	Wire      float64 // bytes that a rank sent over it in a call; of the rank that sent most
	Bandwidth float64 // bytes a second, as measured when the ranks met; of the slowest rank; 0: not known
	Sharing   int     // how many ranks use the link at the same time, at least 1
	Latency   time.Duration
}

// AlgBW is bytes a second.
func (r Row) AlgBW() float64 { return float64(r.Bytes) / r.Median.Seconds() }

// BusBW is bytes a second that a link of each rank must carry.
func (r Row) BusBW() float64 { return r.AlgBW() * BusFactor(r.kind, r.Size) }

// BusFactor is BusBW / AlgBW on w ranks.
func BusFactor(kind comm.Kind, w int) float64 {
	part := float64(w-1) / float64(w)
	switch kind {
	case comm.AllReduce:
		return 2 * part
	case comm.AllGather, comm.ReduceScatter, comm.AllToAll:
		return part
	}
	return 1
}

// maxLevels is how many levels of a transport are compared.
const maxLevels = 4

// session is the measurement of one size on one rank.
type session struct {
	c     comm.Communicator
	cfg   *Config
	call  comm.Call
	mem   *memory
	other Reduction // instead of the call; nil: none
	p     *pattern
	vote  []int64
	wrong int64
	first string
}

// one measures one size.
func one(ctx context.Context, c comm.Communicator, cfg *Config, call comm.Call) (row Row, ways []Way, err error) {
	s := &session{c: c, cfg: cfg, call: call, vote: []int64{0}, p: newPattern(call, c.Size())}
	if s.mem, err = reserve(c, call, cfg.Heap); err != nil {
		return row, nil, err
	}
	if cfg.Reducer != nil {
		if s.other, err = cfg.Reducer(s.mem.in); err != nil {
			return row, nil, err
		}
	}
	bytes := call.Elems * int64(call.DType.Size())
	warm, n := cfg.warmup(), cfg.repeat(bytes)
	times := make([]float64, 0, n)
	before := comm.Describe(c)
	for k := range warm + n {
		t, err := s.round(ctx, k)
		if err != nil {
			if errors.Is(err, ErrStopped) {
				err = errors.Join(err, s.free())
			} // else the group is broken, and its calls may still use the memory, which Close takes
			return row, nil, err
		}
		if k >= warm {
			times = append(times, t.Seconds())
		}
	}
	after := comm.Describe(c)
	slices.Sort(times)
	v := []float64{times[n/2], times[0], times[min(n-1, n*99/100)]}
	for i := range maxLevels { // a rank may lack the outer ones
		wire, slow := 0.0, math.Inf(-1) // of unknown speed
		if i < min(len(before), len(after)) {
			wire = float64(after[i].Wire-before[i].Wire) / float64(warm+n)
			if b := after[i].Bandwidth; b > 0 {
				slow = -b
			}
		}
		v = append(v, wire, slow)
	}
	count := []int64{s.wrong}
	if err := comm.Wait(ctx)(c.AllReduce(ctx, comm.HostOf(v), comm.Max)); err != nil {
		return row, nil, err
	}
	if err := comm.Wait(ctx)(c.AllReduce(ctx, comm.HostOf(count), comm.Sum)); err != nil {
		return row, nil, err
	}
	second := func(s float64) time.Duration { return time.Duration(s * 1e9) }
	row = Row{Bytes: bytes, Elems: call.Elems, Repeat: n, Median: second(v[0]), Min: second(v[1]), P99: second(v[2]), Size: c.Size(),
		Wrong: count[0], First: s.first, kind: call.Kind}
	for i, l := range after {
		if i < maxLevels {
			way := Way{Transport: l.Transport, Wire: v[3+2*i], Sharing: max(1, l.Sharing), Latency: l.Latency}
			if slow := v[4+2*i]; !math.IsInf(slow, 0) {
				way.Bandwidth = -slow
			}
			ways = append(ways, way)
		}
		if l.Algorithm != nil {
			row.Algorithm = l.Algorithm(call)
		}
	}
	return row, ways, s.free()
}

// free gives back what the size needed.
func (s *session) free() error {
	var err error
	if s.other != nil {
		err = s.other.Close()
	}
	return errors.Join(err, s.mem.free())
}

// round fills the memory, agrees with the others to begin, calls, and compares. It returns the time of the call.
func (s *session) round(ctx context.Context, k int) (time.Duration, error) {
	me := s.c.Rank()
	in, out := s.mem.in.Host(), s.mem.out.Host()
	separate := s.mem.in.Ptr.Buf != s.mem.out.Ptr.Buf
	if separate {
		for i := range out {
			out[i] = 0xff
		}
	}
	s.p.fill(in, me, k)
	for i := range s.mem.behind {
		s.mem.behind[i] = byte(i ^ k)
	}
	s.vote[0] = 0
	if s.cfg.Stop != nil && s.cfg.Stop() {
		s.vote[0] = 1
	}
	if err := comm.Wait(ctx)(s.cfg.Start.AllReduce(ctx, comm.HostOf(s.vote), comm.Max)); err != nil {
		return 0, err
	}
	if s.vote[0] != 0 {
		return 0, ErrStopped
	}
	begin := time.Now()
	var err error
	if s.other != nil {
		err = s.other.Reduce(ctx)
	} else {
		err = comm.Wait(ctx)(comm.Do(ctx, s.c, s.call, s.mem.out, s.mem.in))
	}
	took := time.Since(begin)
	if err == nil && !s.cfg.NoCheck {
		s.compare(k, separate)
	}
	return took, err
}

// compare counts what is wrong after repetition k.
func (s *session) compare(k int, separate bool) {
	me, out, tolerance := s.c.Rank(), s.mem.out.Host(), 0.0
	if s.cfg.Tolerance != nil {
		top, _ := span(s.call.DType, s.p.w)
		tolerance = s.cfg.Tolerance(s.p.w, float64(top))
	}
	from := int64(0)
	for _, part := range s.p.result(me, k) {
		mem := out[from*s.p.size:][:part.elems*s.p.size]
		wrong, first := s.p.compare(mem, part.seq, part.at, tolerance)
		if wrong > 0 {
			got := decode(s.call.DType, mem[first*s.p.size:])
			want := decode(s.call.DType, part.seq[(int64(part.at%period)+first%period)*s.p.size:])
			s.bad(k, wrong, fmt.Sprintf("element %d is %v, not %v", from+first, got, want))
		}
		from += part.elems
	}
	for i, b := range s.mem.behind {
		if b != byte(i^k) {
			s.bad(k, 1, fmt.Sprintf("byte %d behind the result was written", i))
			break
		}
	}
	if separate {
		if wrong, first := s.p.compare(s.mem.in.Host(), s.source(), perRank*me+perRound*k, 0); wrong > 0 {
			s.bad(k, wrong, fmt.Sprintf("element %d of the memory that the call only reads has changed", first))
		}
	}
}

// source is the sequence that this rank filled in with.
func (s *session) source() []byte {
	if _, every := span(s.call.DType, s.p.w); reduces(s.call.Kind) && s.call.Op == comm.Sum && s.c.Rank()%every != 0 {
		return make([]byte, len(s.p.raw))
	}
	return s.p.raw
}

func (s *session) bad(k int, n int64, what string) {
	if s.wrong += n; s.first == "" {
		s.first = fmt.Sprintf("rank %d, %v, call %d: %s", s.c.Rank(), s.call, k+1, what)
	}
}
