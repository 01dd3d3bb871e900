package compress

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/reduce"
	"github.com/gotrain/gotrain/npu"
)

func init() {
	kinds["f16"] = func(o Options) (ddp.Codec, error) { return newHalf(npu.F16, o.Factor, o.Device), nil }
	kinds["bf16"] = func(o Options) (ddp.Codec, error) { return newHalf(npu.BF16, 1, o.Device), nil }
}

func newHalf(t npu.DType, factor float64, dev npu.Device) ddp.Codec {
	h := half{dtype: t, factor: factor}
	if dev != nil {
		return &deviceHalf{half: h, dev: dev}
	}
	return &h
}

// half is f16 or bf16.
type half struct {
	dtype  npu.DType
	factor float64
	open   bool
	raw    int64
	ranks  int
	bkts   []halfBucket
	unit   float64
	number int64
}

type halfBucket struct {
	mem    comm.Mem
	x      []float32 // nil: the host cannot access it
	buf    npu.Buffer
	enc    comm.Mem
	h      []uint16
	finite bool
	error  sample
}

// Name tells what distinguishes results.
func (c *half) Name() string {
	if c.dtype == npu.BF16 {
		return "bf16"
	}
	if c.factor == 0 {
		return "f16, factor 1/ranks"
	}
	return fmt.Sprintf("f16, factor %g", c.factor)
}

// Phases is 1: an all-reduce.
func (c *half) Phases() int { return 1 }

// Open makes buffers.
func (c *half) Open(p *bucket.Plan, mem []comm.Mem, to comm.Communicator) (err error) {
	if c.open {
		return fmt.Errorf("compress: %v: opened twice", c.dtype)
	}
	c.open, c.ranks = true, max(to.Size(), p.Config.World) // the ranks of a host may have added their gradients before
	if c.factor == 0 {
		c.factor = math.Exp2(math.Floor(-math.Log2(float64(c.ranks))))
	}
	for k, m := range mem {
		if m.DType != npu.F32 {
			return fmt.Errorf("compress: bucket of %s holds %v\nhint: codecs are for float32 gradients", p.Title(k), m.DType)
		}
		b := halfBucket{mem: m, finite: true}
		if b.buf, err = to.Alloc(2 * m.Elems); err != nil {
			return fmt.Errorf("compress: %d bytes for encoded gradients: %w", 2*m.Elems, err)
		}
		b.enc = comm.Mem{Ptr: npu.Ptr{Buf: b.buf}, Elems: m.Elems, DType: c.dtype}
		if h := b.enc.Host(); h != nil && m.Host() != nil {
			b.x = comm.View[float32](m)
			b.h = unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(h))), m.Elems)
		}
		c.bkts = append(c.bkts, b)
		c.raw += p.Buckets[k].Payload
	}
	return nil
}

// Begin opens a step.
func (c *half) Begin(step int64, scale float64) { c.number, c.unit = step, scale }

// Prepare rounds the gradients.
func (c *half) Prepare(k, _ int) (comm.Call, comm.Mem, comm.Mem, error) {
	b := &c.bkts[k]
	call := comm.Call{Kind: comm.AllReduce, Op: comm.Sum, DType: c.dtype, Elems: b.enc.Elems}
	if b.h == nil && b.enc.Elems > 0 {
		return call, b.enc, b.enc, errNotHost(c.dtype.String())
	}
	reduce.Narrow(c.dtype, b.h, b.x, float32(c.factor))
	b.error = c.sample(b, k)
	return call, b.enc, b.enc, nil
}

// sample measures the loss of rounding on some values.
func (c *half) sample(b *halfBucket, k int) (s sample) {
	const n = 256
	var back [n]float32
	each(len(b.x)/n, c.number+int64(k), func(i int) {
		reduce.Widen(c.dtype, back[:], b.h[i*n:(i+1)*n], float32(1/c.factor))
		for j, v := range b.x[i*n : (i+1)*n] {
			s.add(v, v-back[j])
		}
	})
	return s
}

// Finish restores float32.
func (c *half) Finish(k int) error {
	b := &c.bkts[k]
	b.finite = reduce.Widen(c.dtype, b.x, b.h, float32(1/c.factor))
	return nil
}

// Finite reports whether a bucket's sum was finite when it was decoded last.
func (c *half) Finite(k int) bool { return c.bkts[k].finite }

// Settle has nothing to do: there are no residuals.
func (c *half) Settle(bool) {}

// Coded sums up the buckets.
func (c *half) Coded() ddp.Coded {
	out := ddp.Coded{Raw: c.raw, Sent: c.raw / 2, Bucket: -1}
	for k := range c.bkts {
		b := &c.bkts[k]
		b.error.into(&out, float64(b.mem.Elems), c.unit)
		if !b.finite && !out.NonFinite {
			out.NonFinite, out.Bucket = true, k
		}
	}
	return out
}

// Close frees the buffers.
func (c *half) Close() (err error) {
	for _, b := range c.bkts {
		err = firstError(err, b.buf.Free())
	}
	c.bkts = nil
	return err
}
