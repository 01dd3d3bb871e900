package train

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/data"
)

// ResidualFile holds, in a checkpoint of a run that compresses gradients with error feedback, what each rank still owes to later steps: tensors
// "rankR/PARAMETER" in the plain layout. Their sum over ranks is what the updates lack so far. Where a codec works between hosts, the ranks of a host owe
// different elements; then one tensor has those of all of them, under the name of the first (checkpoint.State.ResidualsBy).
const ResidualFile = "residuals.safetensors"

// owing is a codec that keeps residuals (compress.State).
type owing interface {
	Residual(param int, dst []float32) bool
	Restore(param int, src []float32) error
}

// residuals moves the residuals of a codec between ranks and files, one parameter at a time: rank 0 never holds those of several.
type residuals struct {
	t     *Trainer
	codec owing
	owed  []int      // parameters of the plan that have a residual, by name: the order of a file
	host  []float32  // one residual in the layout of its gradient
	buf   npu.Buffer // the same, where the device converts it
	taken []int      // by rank: how many of its residuals rank 0 has
	hosts [][]int    // ranks whose residuals are one tensor, by host; each alone unless the codec works between hosts
	first []int      // by rank: the first of them
}

// residuals returns nil if the run has none.
func (t *Trainer) residuals() (*residuals, error) {
	codec, ok := t.eng.Codec().(owing)
	if !ok {
		return nil, nil
	}
	r := &residuals{t: t, codec: codec, taken: make([]int, t.comm.Size())}
	r.spread()
	most := int64(0)
	for i, p := range t.eng.Plan().Params {
		if codec.Residual(i, nil) {
			r.owed, most = append(r.owed, i), max(most, p.Elems)
		}
	}
	if len(r.owed) == 0 {
		return nil, nil
	}
	slices.SortFunc(r.owed, func(a, b int) int { return strings.Compare(r.name(a), r.name(b)) })
	var err error
	if r.buf, err = t.dev.Alloc(4 * most); err != nil {
		return nil, fmt.Errorf("train: %d bytes for residuals on their way to a checkpoint: %w", 4*most, err)
	}
	h := r.buf.Host()
	if h == nil {
		return nil, fmt.Errorf("train: rank %d: residuals are in memory that the host cannot access", t.comm.Rank())
	}
	r.host = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(h))), most)
	return r, nil
}

// spread finds the ranks that share tensors.
func (r *residuals) spread() {
	host := make([]int, len(r.taken)) // by rank
	for rank := range host {
		host[rank] = rank
	}
	if _, each := r.t.eng.CodecHosts(); each > 1 {
		host = r.t.eng.Comm().(comm.Leveled).Nodes()
	}
	r.first = make([]int, len(host))
	for rank, h := range host {
		for h >= len(r.hosts) {
			r.hosts = append(r.hosts, nil)
		}
		r.hosts[h] = append(r.hosts[h], rank)
		r.first[rank] = r.hosts[h][0]
	}
}

// residualsBy says which elements of residuals each rank has, for checkpoints: "" if each rank has all.
func (t *Trainer) residualsBy() string {
	if _, each := t.eng.CodecHosts(); each > 1 {
		return comm.Fold(t.eng.Comm())
	}
	return ""
}

func (r *residuals) close() error { return r.buf.Free() }

// desc is the layout of parameter i.
func (r *residuals) desc(i int) npu.Desc { return r.t.train.prog.Weights()[r.t.order[i]].Desc }

func (r *residuals) name(i int) string { return r.t.eng.Plan().Params[i].Name }

// own reads this rank's residual of a parameter in the plain layout.
func (r *residuals) own(ctx context.Context, i int) ([]byte, error) {
	d := r.desc(i)
	b := make([]byte, d.PlainBytes())
	r.codec.Residual(i, r.host)
	if err := r.t.mover.Out(ctx, b, npu.Ptr{Buf: r.buf}, d); err != nil {
		return nil, fmt.Errorf("residual of %s: %w", r.name(i), err)
	}
	return b, nil
}

// set is the reverse of own.
func (r *residuals) set(ctx context.Context, i int, plain []byte) error {
	clear(r.host)
	if err := r.t.mover.In(ctx, npu.Ptr{Buf: r.buf}, r.desc(i), plain); err != nil {
		return fmt.Errorf("residual of %s: %w", r.name(i), err)
	}
	return r.codec.Restore(i, r.host[:r.t.eng.Plan().Params[i].Elems])
}

// send gives rank 0 all residuals of this rank, in the order in which it writes them.
func (r *residuals) send(ctx context.Context) error {
	ctx, cancel := r.t.patient(ctx)
	defer cancel()
	for _, i := range r.owed {
		b, err := r.own(ctx, i)
		if err == nil {
			err = r.t.collected("residuals", comm.Wait(ctx)(r.t.comm.Send(ctx, comm.Host(b, npu.U8), 0)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// next is the next residual of a rank, on rank 0.
func (r *residuals) next(ctx context.Context, rank int) ([]byte, error) {
	ctx, cancel := r.t.patient(ctx)
	defer cancel()
	i := r.owed[r.taken[rank]]
	r.taken[rank]++
	if rank == 0 {
		return r.own(ctx, i)
	}
	b := make([]byte, r.desc(i).PlainBytes())
	return b, r.t.collected(fmt.Sprintf("residuals of rank %d", rank), comm.Wait(ctx)(r.t.comm.Recv(ctx, comm.Host(b, npu.U8), rank)))
}

// whole is the next residual of all ranks of a host together, on rank 0. No element is owed by two of them.
func (r *residuals) whole(ctx context.Context, ranks []int) ([]byte, error) {
	sum, err := r.next(ctx, ranks[0])
	if err != nil || len(ranks) == 1 {
		return sum, err
	}
	all := data.F32(sum)
	for _, rank := range ranks[1:] {
		b, err := r.next(ctx, rank)
		if err != nil {
			return nil, err
		}
		for j, v := range data.F32(b) {
			all[j] += v
		}
	}
	return floatBytes(all), nil
}

// drain receives what a failed save has left: the other ranks send everything in any case.
func (r *residuals) drain(ctx context.Context) error {
	for rank := 1; rank < len(r.taken); rank++ {
		for r.taken[rank] < len(r.owed) {
			if _, err := r.next(ctx, rank); err != nil {
				return err
			}
		}
	}
	return nil
}

// file describes the residuals of all ranks.
func (r *residuals) file(ctx context.Context) checkpoint.TensorFile {
	of := map[string][]int{} // ranks by name of the tensor
	f := checkpoint.TensorFile{Name: ResidualFile, Data: func(s safetensors.Tensor, w io.Writer) error {
		ranks := of[s.Name]
		if want := rankState(ranks[0], r.name(r.owed[r.taken[ranks[0]]])); s.Name != want {
			return fmt.Errorf("internal: %s is written before %s", s.Name, want)
		}
		b, err := r.whole(ctx, ranks)
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	}}
	for _, ranks := range r.hosts {
		for _, i := range r.owed {
			name := rankState(ranks[0], r.name(i))
			of[name] = ranks
			f.Tensors = append(f.Tensors, safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: int64s(r.desc(i).Shape)})
		}
	}
	return f
}

// restoreResiduals gives each rank its own residuals, or, if the number of ranks or which elements they owe has changed, an equal share of their sum.
// Gradients are sums over the items of a step unless the loss is scaled, so residuals grow with a step that has more items. ck is nil on all ranks but 0.
func (t *Trainer) restoreResiduals(ctx context.Context, ck *checkpoint.Checkpoint, from origin) error {
	r, err := t.residuals()
	if err != nil {
		return err
	}
	switch {
	case r == nil && from.Residuals && !t.evaluating && t.comm.Rank() == 0:
		slog.Warn("the checkpoint has residuals of compressed gradients, which this run has no use for: what they hold is lost")
		return nil
	case r == nil || !from.Residuals:
		return nil // residuals begin at zero
	}
	defer r.close()
	grow := 1.0
	if was := from.State.World * from.State.MicroBatch * from.State.Accumulation; !t.cfg.scales() && was > 0 {
		grow = float64(t.globalBatch()) / float64(was)
	}
	same := from.State.World == t.comm.Size() && from.State.ResidualsBy == t.residualsBy()
	for _, i := range r.owed {
		var sum []byte // of all ranks, if something has changed
		b, err := t.fromFirst(ctx, "residual of "+r.name(i), r.desc(i).PlainBytes(), func(rank int) ([]byte, error) {
			if same {
				return r.read(ck, r.first[rank], i, grow)
			}
			if sum != nil {
				return sum, nil
			}
			var err error
			sum, err = r.shared(ck, i, from.State.World, grow)
			return sum, err
		})
		if err == nil {
			err = r.set(ctx, i, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read is the residual of one rank, times by. A parameter that had none, because another codec left it alone, has zeros, and so has a rank whose residuals
// are in the tensor of another.
func (r *residuals) read(ck *checkpoint.Checkpoint, rank, i int, by float64) ([]byte, error) {
	f, name := ck.File(ResidualFile), rankState(rank, r.name(i))
	if _, ok := f.Lookup(name); !ok {
		return make([]byte, r.desc(i).PlainBytes()), nil
	}
	v, err := f.Float32s(name)
	if err != nil {
		return nil, err
	}
	if by != 1 {
		for j := range v {
			v[j] *= float32(by)
		}
	}
	return floatBytes(v), nil
}

// shared is an equal share of the sum over the ranks of the checkpoint, for those ranks that owe an element now: one of each host that the codec works between.
func (r *residuals) shared(ck *checkpoint.Checkpoint, i, world int, by float64) ([]byte, error) {
	sum := make([]float64, r.desc(i).PlainBytes()/4)
	for rank := range world {
		b, err := r.read(ck, rank, i, 1)
		if err != nil {
			return nil, err
		}
		for j, v := range data.F32(b) {
			sum[j] += float64(v)
		}
	}
	out := make([]float32, len(sum))
	owners, _ := r.t.eng.CodecHosts()
	for j, v := range sum {
		out[j] = float32(v * by / float64(owners))
	}
	return floatBytes(out), nil
}
