//go:build cgo && linux

package acl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/cann"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

// Device is an Ascend NPU as an npu.Device.
type Device struct {
	name    string // "npu:0"
	index   int    // as CANN counts
	lib     *cann.Lib
	thread  *thread
	opts    options
	caps    lower.Caps
	info    npu.Info
	context cann.Context
	set     bool // the thread has the device
	abort   abort
	held    int         // what HCCL has on it that cannot be given back; for the thread
	found   atomic.Bool // CANN has found devices

	gauges gauges

	service   *stream // of the device itself: clears memory, copies constants
	serviceMu sync.Mutex

	// For the thread only.
	mirrors []*mirror
	arena   arena
	locked  map[*hostBuffer]bool

	mu       sync.Mutex
	closed   bool
	streams  map[*stream]bool // made by users
	kernels  map[*kernel]bool
	compiled map[string]*compiled // by op
	consts   map[string]*buffer   // by key
	constMu  sync.Mutex           // held while a constant is made
}

var _ npu.Device = (*Device)(nil)

// Open opens an NPU.
func Open(o npu.Options) (*Device, error) {
	if m := here(); !m.plausible() {
		return nil, fmt.Errorf("npu: open: %w: neither /dev/davinci* nor CANN is there\n"+
			"hint: in a container, pass the devices and the driver's folder to it; otherwise use train.device = \"cpu\"", npu.ErrAbsent)
	}
	opts, err := parseOptions(o)
	if err != nil {
		return nil, fmt.Errorf("npu: open: %w", err)
	}
	lib, err := cann.Open()
	if err != nil {
		return nil, absent(fmt.Errorf("npu: open: %w", err))
	}
	d := &Device{name: fmt.Sprintf("npu:%d", opts.index), index: opts.index, lib: lib, opts: opts, locked: map[*hostBuffer]bool{},
		streams: map[*stream]bool{}, kernels: map[*kernel]bool{}, compiled: map[string]*compiled{}, consts: map[string]*buffer{}}
	if d.thread, err = newThread(d.name); err != nil {
		return nil, fmt.Errorf("npu: open: %w", err)
	}
	d.thread.lib, d.thread.debug, d.thread.runner = lib, opts.debugSync, lib.NewRunner()
	go d.thread.run(o.CPUs) // Close ends it
	if err := d.start(); err != nil {
		if err = fmt.Errorf("%s: open: %w", d.name, err); !d.found.Load() {
			err = absent(err)
		}
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// absent marks an error of a machine that has no device file: that it has a CANN, for building, does not mean that something is broken.
func absent(err error) error {
	if m := here(); m.env(cann.EnvHome) == "" && len(m.nodes()) == 0 {
		return fmt.Errorf("%w: %w", npu.ErrAbsent, err)
	}
	return err
}

// openTime is enough for the first call of a process, which takes seconds, on a busy machine.
const openTime = 5 * time.Minute

// start sets the device up, on its thread.
func (d *Device) start() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), openTime, fmt.Errorf("CANN has not opened the device within %v\n"+
		"hint: the driver or the device may hang: npu-smi info and dmesg tell more", openTime))
	defer cancel()
	err := d.thread.do(ctx, func() error {
		if err := d.lib.Init(); err != nil {
			return err
		}
		n, err := d.lib.DeviceCount()
		if err != nil {
			return err
		}
		d.found.Store(n > 0)
		if d.index >= n {
			return fmt.Errorf("device %d of %d\nhint: start at most %d ranks on this machine, or check %s", d.index, n, n, cann.EnvVisible)
		}
		if err := d.lib.SetDevice(d.index); err != nil {
			return err
		}
		d.set = true
		return d.setUp()
	})
	if err != nil {
		return err
	}
	d.service, err = d.newStream("service")
	if err != nil {
		return err
	}
	return d.clock()
}

// setUp learns what the device is and sets its modes.
func (d *Device) setUp() error {
	soc, err := d.lib.SocName()
	if err != nil {
		return err
	}
	family, err := gate(soc, d.opts.experimental)
	if err != nil {
		return err
	}
	bf16, err := d.lib.Attribute(cann.BFloat16)
	if err != nil {
		return err
	}
	infNaN, err := d.lib.Attribute(cann.InfNaN)
	if err != nil {
		return err
	}
	if infNaN && family != lower.A950 { // which has no other mode
		if err := d.lib.SetInfNaN(); err != nil {
			return err
		}
	}
	if err := d.lib.SetDeterministic(d.opts.deterministic); err != nil {
		return err
	}
	if d.context, err = d.lib.CurrentContext(); err != nil {
		return err
	}
	_, total, err := d.lib.MemInfo()
	if err != nil {
		return err
	}
	d.arena = arena{limit: d.opts.memory, put: func(p uintptr) error { return d.lib.Free(cann.Addr(p)) },
		get: func(n int64) (uintptr, error) { p, err := d.lib.Malloc(n); return uintptr(p), err }}
	if d.opts.memory > 0 {
		total = d.opts.memory
		if _, err := d.arena.grow(d.opts.memory); err != nil {
			return d.outOfMemory(d.opts.memory, err)
		}
	}
	d.describe(soc, family, infNaN, bf16, total)
	return nil
}

// describe fills in what Info and the lowering need to know.
func (d *Device) describe(soc string, family lower.Family, infNaN, bf16 bool, total int64) {
	v := d.lib.Version()
	d.caps = lower.Caps{SoC: soc, Family: family, Version: lower.Version{Major: v.Major, Minor: v.Minor}, Symbols: d.lib.HasOp, HF32: d.opts.hf32,
		Exact: d.opts.exact}
	if v.Major == 0 { // no version file: the oldest release is the safe assumption
		d.caps.Version = lower.Version{Major: 8, Minor: 1}
	}
	compute := []npu.DType{npu.F32}
	if infNaN || family == lower.A950 { // saturating f16 hides the overflow that loss scaling looks for
		compute = append(compute, npu.F16)
	}
	if bf16 {
		compute = append(compute, npu.BF16)
	}
	detail := fmt.Sprintf("%s (%v), CANN %s", soc, family, name(v))
	if a := d.lib.InterfaceVersion(); a != "" {
		detail += ", ACL " + a
	}
	if !d.opts.deterministic {
		detail += ", not deterministic"
	}
	if d.opts.hf32 {
		detail += ", HF32"
	}
	// Peak stays unknown: none of the numbers that are quoted for these chips was confirmed.
	d.info = npu.Info{Name: d.name, Family: "npu", Detail: detail, Threads: 1, Memory: total, Compute: compute, Separate: true, Unchecked: true}
}

func name(v cann.Version) string {
	if v.Name == "" {
		return "of unknown version"
	}
	return v.Name
}

// clock learns which time of the device is that of its opening.
func (d *Device) clock() error {
	e, err := d.NewEvent()
	if err != nil {
		return err
	}
	defer e.Close()
	ev := e.(*event)
	if err := errors.Join(d.service.Record(e), d.service.Sync(context.Background())); err != nil {
		return err
	}
	r := ev.current()
	defer r.release()
	return d.thread.do(context.Background(), func() error {
		now, err := d.lib.Timestamp(r.handle)
		d.thread.base = now - uint64(time.Since(d.thread.opened).Microseconds())
		return err
	})
}

// Info describes the device.
func (d *Device) Info() npu.Info { return d.info }

// Caps is what ops are lowered for.
func (d *Device) Caps() lower.Caps { return d.caps }

// wrap adds what was done to an error, unless it tells already that the device is lost.
func (d *Device) wrap(what string, err error) error {
	var dead *deadError
	if errors.As(err, &dead) {
		return err
	}
	return fmt.Errorf("%s: %s: %w", d.name, what, err)
}

// alive returns an error if the device is closed or lost.
func (d *Device) alive() error {
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return fmt.Errorf("%s: %w", d.name, errClosed)
	}
	return d.thread.alive()
}

// Close frees everything that the device has; idempotent. It fails, and frees nothing, if CANN does not return from a call.
func (d *Device) Close() error {
	if err := d.thread.clean(func() error { return nil }); errors.Is(err, errStuck) {
		return d.wrap("close", err)
	}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	var streams []*stream
	for s := range d.streams {
		streams = append(streams, s)
	}
	d.mu.Unlock()
	if d.service != nil {
		streams = append(streams, d.service)
	}
	lost := d.thread.alive() != nil
	var errs []error
	for _, s := range streams {
		errs = append(errs, s.Close())
	}
	errs = append(errs, d.thread.clean(d.tearDown))
	d.thread.end()
	if lost {
		return nil // the cause was reported; what a dead context refuses to free ends with the process
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s: close: %w", d.name, err)
	}
	return nil
}

// tearDown frees in the order that CANN wants: executors, events, memory, context.
func (d *Device) tearDown() error {
	var errs []error
	d.mu.Lock()
	for k := range d.kernels {
		errs = append(errs, k.drop())
	}
	clear(d.kernels)
	d.mu.Unlock()
	t := d.thread
	t.poolMu.Lock()
	for _, e := range t.events {
		errs = append(errs, d.lib.DestroyEvent(e))
	}
	t.pool, t.events = nil, nil
	t.poolMu.Unlock()
	if !d.quiet() {
		clear(d.locked) // to the end of the process, with the device's memory
		return errors.Join(errs...)
	}
	errs = append(errs, d.freeStaging())
	for b := range d.locked {
		b.lose()
		errs = append(errs, d.lib.FreeHost(b.addr))
	}
	clear(d.locked)
	errs = append(errs, d.arena.clear())
	t.runner.Close()
	if d.set && d.held == 0 {
		errs = append(errs, d.lib.ResetDevice(d.index))
	}
	return errors.Join(errs...)
}
