//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/dnnl"
	"github.com/gotrain/gotrain/npu/cpu/kern"
	"github.com/gotrain/gotrain/npu/ref"
)

func init() {
	npu.Register("cpu", 10, func(o npu.Options) (npu.Device, error) { return Open(o) })
}

var errClosed = errors.New("cpu: device is closed")

// Device is the host CPU as an npu.Device.
type Device struct {
	lib     *dnnl.Lib // nil if opened without oneDNN
	isa     string
	threads int
	cpus    []int
	layout  npu.Layout // forced layout of activations; Any: see policy.go
	opened  time.Time
	memory  int64
	peak    map[npu.DType]float64
	fixed   bool // the options say how products of bf16 are computed
	decided atomic.Pointer[decision]
	large   atomic.Int64 // buffers of huge pages so far, see colour

	mu         sync.Mutex
	closed     bool
	hasCompute bool // a stream owns the device's threads
	streams    map[*stream]bool
	chosen     map[string]npu.Op  // results of Choose by op
	bodies     map[string]body    // prepared ops by op
	mds        map[mdKey]*dnnl.MD // descriptors behind layout tokens
	slow       []string           // large ops executed by plain loops
}

var _ npu.Device = (*Device)(nil)

// Open opens the host CPU. It fails if oneDNN cannot be loaded, unless Extra["onednn"] is "off".
func Open(o npu.Options) (*Device, error) {
	d := &Device{opened: time.Now(), streams: map[*stream]bool{}, chosen: map[string]npu.Op{}, bodies: map[string]body{}, mds: map[mdKey]*dnnl.MD{}}
	if err := d.options(o); err != nil {
		return nil, err
	}
	d.memory = here().total()
	limit, err := kern.OneDNNLimit()
	if err != nil {
		return nil, &npu.OptionError{Err: fmt.Errorf("cpu: open: %w", err)}
	}
	if o.Extra["onednn"] == "off" {
		d.isa = "none"
		d.decided.Store(&decision{npu.WideProducts, "no bf16 instructions"})
		return d, nil
	}
	if err := dnnl.Environment(d.threads, o.Share, limit); err != nil {
		return nil, fmt.Errorf("cpu: open: %w", err)
	}
	lib, err := dnnl.Open(o.Extra["onednn"])
	if err != nil {
		return nil, fmt.Errorf("cpu: open: %w", err)
	}
	d.lib, d.isa = lib, lib.ISA()
	if err := d.decideProducts(o.Extra["bf16"]); err != nil {
		return nil, err
	}
	if o.Extra["calibrate"] == "true" {
		if d.peak, err = d.calibrate(o.Compute); err != nil {
			d.Close()
			return nil, fmt.Errorf("cpu: calibrate: %w", err)
		}
	}
	return d, nil
}

func (d *Device) options(o npu.Options) error {
	if o.Threads < 0 || o.Share < 0 {
		return fmt.Errorf("cpu: open: negative number: %d threads, shared by %d ranks", o.Threads, o.Share)
	}
	var mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		return fmt.Errorf("cpu: open: %w", err)
	}
	d.threads = o.Threads
	switch {
	case d.threads > 0:
	case len(o.CPUs) > 0:
		d.threads = len(o.CPUs)
	default:
		d.threads = max(1, mine.Count()/max(1, o.Share))
	}
	for _, c := range o.CPUs {
		if c < 0 || c >= 1024 {
			return fmt.Errorf("cpu: open: processor %d does not exist", c)
		}
	}
	d.cpus = slices.Clone(o.CPUs)
	d.layout = npu.Any
	switch l := o.Extra["layout"]; l {
	case "", "auto":
	case string(NHWC), string(NChw16c), string(NChw8c):
		d.layout = npu.Layout(l)
	default:
		return &npu.OptionError{Err: fmt.Errorf("cpu: open: unknown layout %q\nhint: use one of auto, nhwc, nChw16c, nChw8c", l)}
	}
	for k := range o.Extra {
		if !slices.Contains([]string{"layout", "bf16", "onednn", "calibrate"}, k) {
			return &npu.OptionError{Err: fmt.Errorf("cpu: open: unknown option %q\nhint: use one of layout, bf16, onednn, calibrate", k), Unknown: true}
		}
	}
	return nil
}

// Info describes the device. Peak is known only after calibration. The trainer calls Info at every step, so it reads no files.
func (d *Device) Info() npu.Info {
	detail := d.library()
	info := npu.Info{Name: "cpu", Family: "cpu", Detail: detail + d.says() + ", " + d.team(), Threads: d.threads, Memory: d.memory}
	if d.nativeBF16() {
		info.Compute = []npu.DType{npu.F32, npu.BF16}
	} else {
		info.Compute, info.Widened = []npu.DType{npu.BF16, npu.F32}, map[npu.DType]npu.DType{npu.BF16: npu.F32}
	}
	d.mu.Lock()
	info.Peak, info.Slow = d.peak, slices.Clone(d.slow)
	d.mu.Unlock()
	return info
}

func (d *Device) library() string {
	if d.lib == nil {
		return "without oneDNN"
	}
	return fmt.Sprintf("oneDNN %s, %s", d.lib.Version(), d.isa)
}

func (d *Device) team() string {
	if d.threads == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", d.threads)
}

func (d *Device) alive() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed
	}
	return nil
}

// Has reports whether Compile knows the kind: all kinds of npu/kinds.go, with every attribute named there.
func (d *Device) Has(kind string, attrs npu.Attrs) bool { return ref.Has(kind, attrs) }

// Choose tries the ways to execute the kind in order of preference.
func (d *Device) Choose(op npu.Op) (npu.Op, error) {
	if err := d.alive(); err != nil {
		return npu.Op{}, err
	}
	if err := ref.Check(op); err != nil {
		return npu.Op{}, fmt.Errorf("cpu: %w", err)
	}
	if err := npu.CheckAlgorithm(op, d.Algorithms(op)...); err != nil {
		return npu.Op{}, fmt.Errorf("cpu: %w", err)
	}
	key := op.String()
	d.mu.Lock()
	got, ok := d.chosen[key]
	d.mu.Unlock()
	if ok {
		return got.Clone(), nil
	}
	for _, m := range d.makers(op) {
		got, err := m.choose(d, op.Clone())
		if errors.Is(err, errNotMine) {
			continue
		}
		if err != nil {
			return npu.Op{}, fmt.Errorf("cpu: choose %s: %w", op, err)
		}
		d.mu.Lock()
		d.chosen[key] = got.Clone()
		d.mu.Unlock()
		return got, nil
	}
	return npu.Op{}, fmt.Errorf("cpu: nothing executes %s", op)
}

// Compile prepares an op. Equal ops share the prepared code.
func (d *Device) Compile(op npu.Op) (npu.Kernel, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	if err := ref.Check(op); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	if err := npu.CheckAlgorithm(op, d.Algorithms(op)...); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	op = op.Clone()
	k := &kernel{dev: d, op: op}
	for i := range len(op.In) + len(op.Out) {
		desc, _ := arg(op, i)
		if desc.Layout == npu.Any {
			return nil, fmt.Errorf("cpu: compile %s: argument %d has no concrete layout\nhint: compile what Choose returned", op, i)
		}
		n, err := d.Bytes(desc)
		if err != nil {
			return nil, fmt.Errorf("cpu: compile %s: argument %d: %w", op, i, err)
		}
		k.bytes = append(k.bytes, n)
	}
	key := op.String()
	d.mu.Lock()
	k.body = d.bodies[key]
	d.mu.Unlock()
	if k.body != nil {
		return k, nil
	}
	for _, m := range d.makers(op) {
		b, err := m.build(d, op)
		if errors.Is(err, errNotMine) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cpu: compile %s: %w", op, err)
		}
		k.body = b
		d.mu.Lock()
		if d.bodies[key] == nil && plainLoops(op, b.impl()) { // another goroutine may have compiled it too
			d.slow = append(d.slow, key+" by "+b.impl())
		}
		d.bodies[key] = b
		d.mu.Unlock()
		return k, nil
	}
	return nil, fmt.Errorf("cpu: nothing executes %s with these layouts\nhint: compile what Choose returned", op)
}

// Close ends the streams and drops the kernels; idempotent. Buffers remain valid until their Free.
func (d *Device) Close() error {
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
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.chosen)
	clear(d.bodies)
	clear(d.mds)
	return errors.Join(errs...)
}
