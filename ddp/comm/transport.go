package comm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// Opening is what a data communicator is made of.
type Opening struct {
	Control Communicator // joins the same ranks through host memory; the data communicator does not close it
	Device  npu.Device   // whose memory is exchanged

	LocalRank int // index on this machine, among LocalSize
	LocalSize int
	Node      int // index of this machine

	Timeout  time.Duration     // how long to wait for a silent rank while the communicator is made; 0 = 5 minutes
	LongWork time.Duration     // how long for one at long work; 0 = 1 hour
	Options  map[string]string // of the run, by key; a transport documents its own
}

// transport makes data communicators for devices with memory of their own.
type transport struct {
	name     string
	priority int
	suits    func(npu.Device) bool
	open     func(context.Context, Opening) (Communicator, error)
}

var (
	transportsMu sync.Mutex
	transports   []transport
)

// RegisterTransport adds a transport for device memory; called from init of its package. suits tells by the device alone, equally on all ranks,
// whether the transport can move its memory. Of those that suit, the one of highest priority is opened. In this module: 0 for staging through host
// memory, 10 for a device's own library.
//
// Rules for open: every rank calls it at the same point. The communicator has ranks and size of Opening.Control. Its Abort breaks Control too, and
// while it waits it asks Check(Control), so that an abort of either breaks both on every rank. It is closed before Control and before the device.
func RegisterTransport(name string, priority int, suits func(npu.Device) bool, open func(context.Context, Opening) (Communicator, error)) {
	transportsMu.Lock()
	defer transportsMu.Unlock()
	if slices.ContainsFunc(transports, func(t transport) bool { return t.name == name }) {
		panic("comm: transport registered twice: " + name)
	}
	transports = append(transports, transport{name, priority, suits, open})
	slices.SortStableFunc(transports, func(a, b transport) int { return b.priority - a.priority })
}

// Transports lists the registered transports for device memory, that of highest priority first.
func Transports() []string {
	transportsMu.Lock()
	defer transportsMu.Unlock()
	var names []string
	for _, t := range transports {
		names = append(names, t.name)
	}
	return names
}

// ForDevice returns the data communicator for the memory of a device: the control communicator itself if the host can access that memory, or if there
// is one rank; otherwise what the suitable transport of highest priority opens. An error of that transport is final: a slower one is not tried instead.
// The caller closes the result only if it is not Control.
func ForDevice(ctx context.Context, o Opening) (Communicator, error) {
	if o.Control == nil || o.Device == nil {
		return nil, errors.New("comm: a data communicator needs a control communicator and a device")
	}
	info := o.Device.Info()
	if !info.Separate {
		return o.Control, nil
	}
	if o.Control.Size() == 1 {
		return &alone{o.Control}, nil
	}
	transportsMu.Lock()
	var names []string
	var found *transport
	for i := range transports {
		names = append(names, transports[i].name)
		if found == nil && transports[i].suits(o.Device) {
			found = &transports[i]
		}
	}
	transportsMu.Unlock()
	if found == nil {
		return nil, fmt.Errorf("comm: no transport of this binary moves the memory of device %s (transports for devices: %s)\n"+
			"hint: import ddp/comm/staged, which moves it through host memory", info.Name, strings.Join(names, ", "))
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute
	}
	if o.LongWork == 0 {
		o.LongWork = time.Hour
	}
	c, err := found.open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("comm: opening transport %s for device %s: %w", found.name, info.Name, err)
	}
	return c, nil
}

// alone is the data communicator of one rank: collectives change nothing, so they are complete as soon as what comes before them is.
type alone struct{ Communicator }

var _ Ordered = (*alone)(nil)

// AllReduceAfter leaves m unchanged. Its event is ev.
func (a *alone) AllReduceAfter(ctx context.Context, ev npu.Event, m Mem, op Op) (Handle, error) {
	h, err := a.AllReduce(ctx, m, op)
	if err != nil {
		return nil, err
	}
	return &behind{Handle: h, ev: ev}, nil
}

// Close leaves the control communicator open.
func (a *alone) Close() error { return nil }

// behind is a finished collective whose memory is complete at ev.
type behind struct {
	Handle
	ev   npu.Event
	once sync.Once
	done chan struct{}
}

func (b *behind) Event() npu.Event { return b.ev }

// Wait waits for the device, because the memory holds the result only then.
func (b *behind) Wait(ctx context.Context) error { return b.ev.Sync(ctx) }

// Done is closed when the device has reached the event.
func (b *behind) Done() <-chan struct{} {
	b.once.Do(func() {
		b.done = make(chan struct{})
		go func() {
			_ = b.ev.Sync(context.Background()) // Wait reports the error
			close(b.done)
		}()
	})
	return b.done
}
