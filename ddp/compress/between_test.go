package compress_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/nodes"
	"github.com/gotrain/gotrain/ddp/compress"
	"github.com/gotrain/gotrain/npu"
)

// wire counts what the ranks of each host give to the groups between hosts, by what their collectives must send at least.
type wire struct {
	mu    sync.Mutex
	bytes map[int]int64 // by host
	kinds map[string]int64
}

func (w *wire) add(host int, what string, n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes[host] += n
	w.kinds[what] += n
}

// rail is a counted group between hosts.
type rail struct {
	comm.Communicator
	w *wire
}

func (r rail) Branch(ctx context.Context) (comm.Communicator, error) {
	c, err := comm.Branch(ctx, r.Communicator)
	return rail{c, r.w}, err
}

func (r rail) AllReduce(ctx context.Context, m comm.Mem, op comm.Op) (comm.Handle, error) {
	n := int64(r.Size())
	r.w.add(r.Rank(), "allreduce "+m.DType.String(), 2*m.Bytes()*(n-1)/n)
	return r.Communicator.AllReduce(ctx, m, op)
}

func (r rail) AllToAll(ctx context.Context, out, in comm.Mem) (comm.Handle, error) {
	n := int64(r.Size())
	r.w.add(r.Rank(), "alltoall "+in.DType.String(), in.Bytes()*(n-1)/n)
	return r.Communicator.AllToAll(ctx, out, in)
}

func (r rail) AllGather(ctx context.Context, out, in comm.Mem) (comm.Handle, error) {
	if in.Elems > 2048 || in.DType != npu.U8 || in.Elems%64 == 0 { // not a greeting of a call of all levels
		r.w.add(r.Rank(), "allgather "+in.DType.String(), in.Bytes()*int64(r.Size()-1))
	}
	return r.Communicator.AllGather(ctx, out, in)
}

// hosted runs f on every rank of a job on hosts, each with an engine.
func hosted(t *testing.T, nodeOf []int, codec func() (ddp.Codec, error), params []bucket.Param, w *wire, f func(e *ddp.Engine, c comm.Communicator) error) {
	t.Helper()
	g, err := nodes.NewLocal(nodeOf, func(cfg *nodes.Config) {
		if cfg.Outer != nil && w != nil {
			cfg.Outer = rail{cfg.Outer, w}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, c := range g {
			c.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var list []ddp.Param
	for _, p := range params {
		list = append(list, ddp.Param{Name: p.Name, Elems: p.Elems, Group: p.Group})
	}
	errs := make([]error, len(g))
	var wg sync.WaitGroup
	for r, c := range g {
		wg.Go(func() {
			errs[r] = func() error {
				k, err := codec()
				if err != nil {
					return err
				}
				e, err := ddp.New(ctx, ddp.Config{Comm: c, Codec: k, Params: list, BucketMB: 1. / 16, FirstBucketMB: 1. / 128})
				if err != nil {
					return err
				}
				return errors.Join(f(e, c), e.Close())
			}()
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// gradient is what a rank has for element j of parameter i in a step.
func gradient(rank, i int, step int64) []float32 {
	r := rand.New(rand.NewPCG(uint64(rank*1000+i), uint64(step)))
	g := make([]float32, sizes[i].Elems)
	for j := range g {
		g[j] = 2*r.Float32() - 1
	}
	return g
}

// step fills the gradients of a step and reduces them.
func step(e *ddp.Engine, rank int, n int64, spoil func(i int, g []float32)) (ddp.StepStats, error) {
	if err := e.Begin(n, true); err != nil {
		return ddp.StepStats{}, err
	}
	for i := range sizes {
		copy(e.GradF32(i), gradient(rank, i, n))
		if spoil != nil {
			spoil(i, e.GradF32(i))
		}
		if err := e.Ready(i); err != nil {
			return ddp.StepStats{}, err
		}
	}
	return e.Wait(context.Background())
}

var places = map[string][]int{
	"2x2": {0, 0, 1, 1}, "2x3": {0, 0, 0, 1, 1, 1}, "2x2 mixed": {0, 1, 0, 1}, "3x2": {0, 0, 1, 1, 2, 2}, "1x4": {0, 0, 0, 0}, "4x1": {0, 1, 2, 3}, "1+2": {0, 1, 1},
}

// Over hosts, sums are within the codec's bound of the exact ones, also added up over steps, and have the same bits on all ranks.
func TestBetweenHosts(t *testing.T) {
	for _, name := range compress.Names() {
		for place, nodeOf := range places {
			t.Run(name+"/"+place, func(t *testing.T) {
				w := len(nodeOf)
				// Each number is rounded on its way to the owner of its part, and the sum there: by at most half a unit of the last of 11 or 8 bits, or of 127.
				bound := map[string]float64{"f16": 1. / 1024, "bf16": 1. / 128, "int8": 1.02 * 2 / 254}[name] * float64(w)
				const steps = 4
				var mu sync.Mutex
				bits := map[int64][]uint64{}
				hosted(t, nodeOf, func() (ddp.Codec, error) { return compress.New(name, compress.Options{Block: 64, Raw: isBias}) }, sizes, nil,
					func(e *ddp.Engine, c comm.Communicator) error {
						hosts, each := e.CodecHosts()
						if h, l := comm.Even(c); h > 1 && l > 1 && (hosts != h || each != l) || (h < 2 || l < 2) && (hosts != w || each != 1) {
							return fmt.Errorf("the codec works between %d hosts of %d ranks", hosts, each)
						}
						total := make([][]float64, len(sizes)) // of what the sums lack
						for n := range int64(steps) {
							if _, err := step(e, c.Rank(), n, nil); err != nil {
								return err
							}
							var sums []uint64
							for i := range sizes {
								exact, got := make([]float64, sizes[i].Elems), e.GradF32(i)
								for r := range w {
									for j, v := range gradient(r, i, n) {
										exact[j] += float64(v)
									}
								}
								if total[i] == nil {
									total[i] = make([]float64, len(exact))
								}
								limit := bound
								if name == "int8" && isBias(sizes[i].Name) {
									limit = float64(w) * 1e-6
								}
								for j := range exact {
									off := float64(got[j]) - exact[j]
									total[i][j] += off
									if name != "int8" { // each step for itself
										total[i][j] = off
									}
									if math.Abs(total[i][j]) > limit {
										return fmt.Errorf("step %d: %s[%d] is off by %g in total, bound %g", n, sizes[i].Name, j, total[i][j], limit)
									}
								}
								for j := range got {
									sums = append(sums, uint64(math.Float32bits(got[j])))
								}
							}
							e.Settle(true)
							mu.Lock()
							if bits[n] == nil {
								bits[n] = sums
							}
							same := slices.Equal(bits[n], sums)
							mu.Unlock()
							if !same {
								return fmt.Errorf("step %d: rank %d has other bits", n, c.Rank())
							}
						}
						return nil
					})
			})
		}
	}
}

// A host sends each number once in each direction, encoded, however many ranks it has; no rank has more than its part of residuals.
func TestBytesBetweenHosts(t *testing.T) {
	params := []bucket.Param{{Name: "w", Elems: 6 << 12}}
	for _, place := range []string{"2x2", "2x3", "3x2"} {
		nodeOf := places[place]
		hosts, each := nodeOf[len(nodeOf)-1]+1, len(nodeOf)/(nodeOf[len(nodeOf)-1]+1)
		for name, per := range map[string]float64{"f16": 2, "bf16": 2, "int8": 1 + 4./256} {
			w := &wire{bytes: map[int]int64{}, kinds: map[string]int64{}}
			hosted(t, nodeOf, func() (ddp.Codec, error) { return compress.New(name, compress.Options{}) }, params, w, func(e *ddp.Engine, c comm.Communicator) error {
				if err := errors.Join(comm.Wait(t.Context())(c.Barrier(t.Context()))); err != nil {
					return err
				}
				w.mu.Lock()
				if c.Rank() == 0 {
					clear(w.bytes)
					clear(w.kinds)
				}
				w.mu.Unlock()
				if err := errors.Join(comm.Wait(t.Context())(c.Barrier(t.Context()))); err != nil {
					return err
				}
				if err := errors.Join(e.Begin(0, true), e.Ready(0)); err != nil {
					return err
				}
				s, err := e.Wait(t.Context())
				if got, want := float64(s.Coded.Raw)/float64(s.Coded.Sent), 4/per; math.Abs(got-want) > 0.01*want {
					return errors.Join(err, fmt.Errorf("a ratio of %g, want %g", got, want))
				}
				if s.Coded.Raw != 4*params[0].Elems/int64(each) {
					return fmt.Errorf("%d bytes of gradients on a rank", s.Coded.Raw)
				}
				return err
			})
			// Each rank encodes its part in blocks, and pads it to 64 bytes for each other host.
			want := 2 * per * float64(params[0].Elems) * float64(hosts-1) / float64(hosts)
			for h := range hosts {
				if got := float64(w.bytes[h]); got < want || got > want+float64(2*64*each*hosts) {
					t.Errorf("%s, %s: host %d sends %v bytes, want %v: %v", name, place, h, got, want, w.kinds)
				}
			}
		}
	}
}

// A number that is not finite, on any rank and in any part, is seen by all ranks, in the bucket where it was; residuals of that step are dropped.
func TestNotFiniteBetweenHosts(t *testing.T) {
	for _, name := range compress.Names() {
		for _, place := range []string{"2x2", "4x1"} {
			nodeOf := places[place]
			for _, at := range []struct{ rank, param, elem int }{{0, 0, 0}, {1, 0, 4999}, {2, 1, 5}, {2, 4, 35000}, {3, 4, 69999}, {0, 5, 32}} {
				for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(-1))}[:1+at.rank%2] {
					var mu sync.Mutex
					buckets := map[int]bool{}
					hosted(t, nodeOf, func() (ddp.Codec, error) { return compress.New(name, compress.Options{Raw: isBias}) }, sizes, nil,
						func(e *ddp.Engine, c comm.Communicator) error {
							for n := range int64(3) {
								s, err := step(e, c.Rank(), n, func(i int, g []float32) {
									if n == 1 && c.Rank() == at.rank && i == at.param {
										g[at.elem] = bad
									}
								})
								if err != nil || s.Coded.NonFinite != (n == 1) {
									return errors.Join(err, fmt.Errorf("%s %v: step %d on rank %d: not finite: %v", name+place, at, n, c.Rank(), s.Coded.NonFinite))
								}
								if n == 1 {
									k, _ := e.Plan().Of(at.param)
									mu.Lock()
									buckets[s.Coded.Bucket] = true
									mu.Unlock()
									if s.Coded.Bucket != k {
										return fmt.Errorf("bucket %d is not finite, want %d", s.Coded.Bucket, k)
									}
								}
								e.Settle(n != 1)
							}
							return nil
						})
					if len(buckets) != 1 {
						t.Errorf("%s, %+v: ranks see buckets %v", name, at, buckets)
					}
				}
			}
		}
	}
}

// Residuals move to new engines by parameter, and the following steps have the same bits; the elements of the ranks of a host complete each other.
func TestRestoreBetweenHosts(t *testing.T) {
	nodeOf := places["2x3"]
	codec := func() (ddp.Codec, error) { return compress.New("int8", compress.Options{Block: 64, Raw: isBias}) }
	owed := make([][][]float32, len(nodeOf)) // by rank and parameter
	want, again := make([][]float32, len(nodeOf)), make([][]float32, len(nodeOf))
	last := func(e *ddp.Engine, c comm.Communicator, to [][]float32) error {
		for n := int64(3); n < 5; n++ {
			if _, err := step(e, c.Rank(), n, nil); err != nil {
				return err
			}
			for i := range sizes {
				to[c.Rank()] = append(to[c.Rank()], e.GradF32(i)...)
			}
			e.Settle(true)
		}
		return nil
	}
	type state interface {
		Residual(i int, dst []float32) bool
		Restore(i int, src []float32) error
	}
	hosted(t, nodeOf, codec, sizes, nil, func(e *ddp.Engine, c comm.Communicator) error {
		for n := range int64(3) {
			if _, err := step(e, c.Rank(), n, nil); err != nil {
				return err
			}
			e.Settle(true)
		}
		for i, p := range sizes {
			v := make([]float32, p.Elems)
			if e.Codec().(state).Residual(i, v) == strings.HasSuffix(p.Name, ".bias") {
				return fmt.Errorf("%s owes something: %v", p.Name, !isBias(p.Name))
			}
			owed[c.Rank()] = append(owed[c.Rank()], v)
		}
		return last(e, c, want)
	})
	for i, p := range sizes {
		for j := range p.Elems {
			for h := range 2 {
				n := 0
				for l := range 3 {
					if owed[3*h+l][i][j] != 0 {
						n++
					}
				}
				if n > 1 {
					t.Fatalf("%d ranks of host %d owe %s[%d]", n, h, p.Name, j)
				}
			}
		}
	}
	hosted(t, nodeOf, codec, sizes, nil, func(e *ddp.Engine, c comm.Communicator) error {
		first := c.Rank() / 3 * 3
		for i, p := range sizes {
			whole := make([]float32, p.Elems) // of the host, as checkpoints have it
			for l := range 3 {
				for j, v := range owed[first+l][i] {
					whole[j] += v
				}
			}
			if isBias(p.Name) {
				continue
			}
			if err := e.Codec().(state).Restore(i, whole); err != nil {
				return err
			}
		}
		return last(e, c, again)
	})
	for r := range want {
		if !slices.Equal(want[r], again[r]) {
			t.Errorf("rank %d goes on with other bits", r)
		}
	}
}
