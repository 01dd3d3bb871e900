package ref

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() { npu.Register("ref", 0, Open) }

// device is the family "ref".
type device struct {
	threads int
	half    bool // lists F16
	memory  memoryMode
	opened  time.Time

	mu      sync.Mutex
	closed  bool
	streams map[*stream]bool
	locked  []*buffer // memory from AllocHost
}

var (
	_ npu.Device        = (*device)(nil)
	_ npu.HostAllocator = (*device)(nil)
)

// Open opens the plain-Go device. Options.Threads limits the goroutines of a kernel; CPUs is ignored. With Compute = F16, or Extra["f16"] = "true", it lists
// F16 among the types of activations, as accelerators do. Extra["memory"] is "host" (the default), "separate" or "strict": see the package's documentation.
func Open(o npu.Options) (npu.Device, error) {
	if o.Threads < 0 || o.Share < 0 {
		return nil, fmt.Errorf("ref: open: negative number: %d threads, shared by %d ranks", o.Threads, o.Share)
	}
	for k := range o.Extra {
		if !slices.Contains([]string{"memory", "f16", "calibrate"}, k) { // calibrate: the peak of this device interests nobody
			return nil, &npu.OptionError{Err: fmt.Errorf("ref: open: unknown option %q\nhint: use one of memory, f16", k), Unknown: true}
		}
	}
	memory, err := parseMemory(o.Extra["memory"])
	if err != nil {
		return nil, &npu.OptionError{Err: err}
	}
	n := o.Threads
	if n == 0 {
		n = max(1, runtime.GOMAXPROCS(0)/max(1, o.Share))
	}
	half := o.Compute == npu.F16
	if v, set := o.Extra["f16"]; set {
		if half, err = strconv.ParseBool(v); err != nil {
			return nil, &npu.OptionError{Err: fmt.Errorf("ref: open: option f16 is %q, must be true or false", v)}
		}
	}
	return &device{threads: n, half: half, memory: memory, opened: time.Now(), streams: map[*stream]bool{}}, nil
}

func (d *device) Info() npu.Info {
	compute := []npu.DType{npu.BF16, npu.F32}
	if d.half {
		compute = []npu.DType{npu.BF16, npu.F16, npu.F32}
	}
	return npu.Info{
		Name:    "ref",
		Family:  "ref",
		Detail:  fmt.Sprintf("plain Go with float64 accumulation, %d threads", d.threads),
		Threads: d.threads,
		Compute: compute,

		Separate: d.memory != hostMemory,
	}
}

var errClosed = errors.New("ref: device is closed")

func (d *device) alive() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed
	}
	return nil
}

func (d *device) Has(kind string, attrs npu.Attrs) bool { return Has(kind, attrs) }

// Choose returns Plain for every layout.
func (d *device) Choose(op npu.Op) (npu.Op, error) {
	if err := Check(op); err != nil {
		return npu.Op{}, err
	}
	if err := npu.CheckAlgorithm(op); err != nil {
		return npu.Op{}, fmt.Errorf("ref: %w", err)
	}
	op = op.Clone()
	for i := range op.In {
		op.In[i].Layout = npu.Plain
	}
	for i := range op.Out {
		op.Out[i].Layout = npu.Plain
	}
	return op, nil
}

func (d *device) Compile(op npu.Op) (npu.Kernel, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	if err := Check(op); err != nil {
		return nil, err
	}
	if err := npu.CheckAlgorithm(op); err != nil {
		return nil, fmt.Errorf("ref: %w", err)
	}
	for i := range len(op.In) + len(op.Out) {
		if a := argDesc(op, i); a.Layout != npu.Plain {
			return nil, fmt.Errorf("ref: %s: argument %d is %s, but only the plain layout is supported", op.Kind, i, a)
		}
	}
	return &kernel{dev: d, op: op.Clone()}, nil
}

func (d *device) Bytes(t npu.Desc) (int64, error) {
	if t.Layout != npu.Plain || t.DType.Size() == 0 {
		return 0, fmt.Errorf("ref: size of %s: only the plain layout is supported", t)
	}
	return t.PlainBytes(), nil
}

// Close stops the streams. Buffers are garbage-collected.
func (d *device) Close() error {
	d.mu.Lock()
	d.closed = true
	var open []*stream
	for s := range d.streams {
		open = append(open, s)
	}
	d.mu.Unlock()
	var errs []error
	for _, s := range open {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// kernel is a checked op.
type kernel struct {
	dev *device
	op  npu.Op
}

func (k *kernel) Op() npu.Op       { return k.op }
func (k *kernel) Impl() string     { return "go:" + k.op.Kind }
func (k *kernel) Workspace() int64 { return 0 }
func (k *kernel) Close() error     { return nil }

// Bind fixes the arguments' memory.
func (k *kernel) Bind(args []npu.Ptr, _ npu.Ptr) (npu.Launch, error) {
	if len(args) != len(k.op.In)+len(k.op.Out) {
		return nil, fmt.Errorf("ref: %s: bind: %d arguments for %d inputs and %d outputs", k.op.Kind, len(args), len(k.op.In), len(k.op.Out))
	}
	l := &launch{kernel: k, args: make([][]byte, len(args))}
	for i, p := range args {
		d := argDesc(k.op, i)
		if p.IsNil() {
			if i < len(k.op.In) {
				return nil, fmt.Errorf("ref: %s: bind: input %d, %s, is nil", k.op.Kind, i, d)
			}
			if out := i - len(k.op.In); out == 0 || !kind.Of(k.op.Kind).MayBeNil(k.op.Attrs, out) {
				return nil, fmt.Errorf("ref: %s: bind: output %d, %s, is nil, but the kind does not allow to leave it out", k.op.Kind, out, d)
			}
			continue
		}
		mem, err := k.dev.span(p, d.PlainBytes())
		if err != nil {
			return nil, fmt.Errorf("ref: %s: bind: argument %d, %s: %w", k.op.Kind, i, d, err)
		}
		l.args[i] = mem
	}
	return l, nil
}

// launch is a kernel with its memory.
type launch struct {
	kernel *kernel
	args   [][]byte
}

func (l *launch) Kernel() npu.Kernel { return l.kernel }
