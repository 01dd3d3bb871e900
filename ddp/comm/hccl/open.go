package hccl

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/hccl/settings"
	"github.com/gotrain/gotrain/npu"
)

// rootInfoSize is the size of what rank 0 makes for the others to find it.
const rootInfoSize = 4108

// opening is the way to a Comm. Every rank takes the same steps; after each that may fail on one rank alone, the ranks tell each other, so that
// none waits for a rank that has given up.
type opening struct {
	comm.Opening
	port   port
	ctx    context.Context // with the deadlines of the others
	c      *Comm
	set    *settings.Settings
	insist bool // Comm.insist, for tests
}

// open makes the group.
func open(ctx context.Context, o comm.Opening, p port) (*Comm, error) {
	return (&opening{Opening: o, port: p}).run(ctx)
}

func (o *opening) run(ctx context.Context) (_ *Comm, err error) {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute
	}
	o.LongWork = max(o.LongWork, o.Timeout)
	var cancel context.CancelFunc
	o.ctx, cancel = comm.Patient(ctx, o.Timeout, o.LongWork)
	defer cancel()
	o.c = &Comm{rank: o.Control.Rank(), size: o.Control.Size(), control: o.Control, port: o.port, longWork: o.LongWork, left: make(chan struct{}),
		closeTime: closeTime, insist: o.insist}
	c := o.c
	c.Issue = c.plain
	c.filled.L = &c.mu
	c.life, c.end = context.WithCancel(context.Background())
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"reading the settings of HCCL", o.settings},
		{"comparing devices", o.devices},
		{"loading HCCL", o.load},
		{"making a second group", o.branch},
		{"connecting", o.connect},
	} {
		if err := step.do(); err != nil {
			c.discard()
			return nil, fmt.Errorf("rank %d: %s: %w", c.rank, step.what, err)
		}
	}
	c.wg.Add(1)
	go c.completer()
	if err := o.first(); err != nil {
		c.Close()
		return nil, fmt.Errorf("rank %d: the first reduction, which builds the links: %w", c.rank, err)
	}
	return c, nil
}

// discard gives back what a failed opening has.
func (c *Comm) discard() {
	c.end()
	if c.insist {
		_ = c.destroy(dropTime)
	} else {
		c.hold()
	}
	if c.rail != nil {
		_ = c.rail.Close()
	}
	if c.posts != nil {
		_ = c.posts.Close()
	}
}

// agree tells all ranks whether this one failed. It returns this rank's error, or that of the first rank that has one.
func (o *opening) agree(what string, err error) error {
	const room = 512
	if o.c.size == 1 {
		return err
	}
	mine := make([]byte, room)
	if err != nil {
		mine[0] = 1
		copy(mine[1:], err.Error())
	}
	all := make([]byte, room*o.c.size)
	if e := comm.Wait(o.ctx)(o.Control.AllGather(o.ctx, comm.Host(all, npu.U8), comm.Host(mine, npu.U8))); e != nil {
		if err != nil {
			return err
		}
		return renamed(o.c.rank, what, e)
	}
	for r := 0; r < o.c.size && err == nil; r++ {
		if text := all[room*r : room*(r+1)]; text[0] != 0 {
			return &comm.PeerError{Rank: r, Call: what, Reason: strings.ToValidUTF8(strings.TrimRight(string(text[1:]), "\x00"), "")}
		}
	}
	return err
}

// settings reads the environment and the options, and compares them between ranks: HCCL wants them equal, and does not say so.
func (o *opening) settings() error {
	f, options := o.port.Facts(), maps.Clone(o.Options)
	if !f.deterministic && options[settings.OptionDeterministic] == "" {
		if options == nil {
			options = map[string]string{}
		}
		options[settings.OptionDeterministic] = "false" // kernels and collectives together
	}
	var err error
	o.set, err = settings.Read(settings.Input{Env: settings.Environ(), Options: options, Ranks: o.c.size, SoC: f.family,
		LongWork: o.LongWork, Address: addressOf(o.Control)})
	if err := o.agree("reading the settings of HCCL", err); err != nil {
		return err
	}
	if o.c.size > 1 {
		items := make([]comm.Item, 0, len(o.set.Lines))
		for _, l := range o.set.Lines {
			if !l.Own {
				items = append(items, comm.Item{Name: l.What, Text: l.Value})
			}
		}
		if err := comm.Consensus(o.ctx, o.Control, "the settings of HCCL", items); err != nil {
			return fmt.Errorf("%w\nhint: set the same variables on all ranks; a launcher may pass on only some", err)
		}
	}
	if o.c.rank == 0 && o.c.size > 1 {
		slog.Info(o.set.String())
	}
	for _, v := range o.set.Setenv {
		if err := os.Setenv(v.Name, v.Value); err != nil {
			return err
		}
	}
	o.c.before, o.c.timeout, o.c.config = o.set.Before, o.set.Timeout, o.set.Config
	return nil
}

// devices finds two ranks on one device of a host, which makes HCCL hang or fail obscurely.
func (o *opening) devices() error {
	if o.c.size == 1 {
		return nil
	}
	host, physical := hostID(), o.port.Facts().physical
	const room = 256
	mine := make([]byte, room)
	copy(mine, host+"\x00"+physical+"\x00"+strconv.Itoa(os.Getpid()))
	all := make([]byte, room*o.c.size)
	if err := comm.Wait(o.ctx)(o.Control.AllGather(o.ctx, comm.Host(all, npu.U8), comm.Host(mine, npu.U8))); err != nil {
		return err
	}
	places := make([]place, o.c.size)
	for r := range places {
		f := strings.Split(string(all[room*r:room*(r+1)]), "\x00")
		places[r] = place{host: f[0], device: f[1], pid: f[2]}
	}
	return wrongPlaces(places)
}

// load loads the library and makes the stream.
func (o *opening) load() error {
	err := func() (err error) {
		if o.c.size > 1 {
			if o.c.lib, err = o.port.HCCL(); err != nil {
				return err
			}
		}
		r, err := o.port.Rail("comm")
		if err == nil {
			o.c.rail = r
		}
		return err
	}()
	return o.agree("loading HCCL", err)
}

// branch makes the group of the announcements.
func (o *opening) branch() error {
	if o.c.size == 1 {
		return nil
	}
	posts, err := comm.Branch(o.ctx, o.Control)
	o.c.posts = posts
	return o.agree("making a second group", err)
}

// connect makes HCCL's communicator: rank 0 says where it listens, and all come there.
func (o *opening) connect() error {
	if o.c.size == 1 {
		return nil
	}
	c := o.c
	root := make([]byte, rootInfoSize+8)
	var err error
	if c.rank == 0 {
		made := make(chan []byte, 1)
		err = o.onThread(func() error {
			info, err := c.lib.RootInfo()
			made <- info
			return err
		})
		if err == nil {
			copy(root, <-made)
		}
		binary.LittleEndian.PutUint64(root[rootInfoSize:], random())
	}
	if err := o.agree("making the root information", explain(err)); err != nil {
		return err
	}
	if err := comm.Wait(o.ctx)(o.Control.Broadcast(o.ctx, comm.Host(root, npu.U8), 0)); err != nil {
		return err
	}
	c.config.Name = fmt.Sprintf("gotrain-%016x", binary.LittleEndian.Uint64(root[rootInfoSize:]))
	config := c.config.Bytes()
	made := make(chan uintptr, 1)
	err = o.onThread(func() error {
		group, err := c.lib.Init(c.size, root[:rootInfoSize], c.rank, config)
		made <- group
		return err
	})
	if err == nil {
		c.group = <-made
	} else {
		c.unsure = true
		// The others are inside of HCCL, where they would wait for a rank that does not come.
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("HCCL did not connect the ranks within %v: %w\nhint: HCCL's log says what it waits for; try HCCL_SOCKET_IFNAME", o.Timeout, err)
		}
		err = explain(err)
		o.Control.Abort(err)
		return err
	}
	return o.agree("connecting", nil)
}

// onThread runs f on the device's thread. It stops waiting when a peer has given up or its deadline has passed; HCCL may then still be at it, so f must not
// write what others read.
func (o *opening) onThread(f func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), o.Timeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- o.port.OnThread(ctx, f) }()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			if err := comm.Check(o.Control); err != nil {
				return err
			}
			if o.ctx.Err() != nil {
				return context.Cause(o.ctx)
			}
		}
	}
}

// first reduces eight numbers, because HCCL builds its links at the first collective, and checks the sum.
func (o *opening) first() error {
	const n = 8
	c := o.c
	buf, err1 := c.port.Alloc(4 * n)
	stage, err2 := npu.AllocHost(c.port, 4*n)
	defer func() {
		for _, b := range []npu.Buffer{buf, stage} {
			if b != nil {
				_ = b.Free()
			}
		}
	}()
	if err := o.agree("allocating memory", firstOf(err1, err2)); err != nil {
		return err
	}
	v := comm.View[float32](comm.Host(stage.Host(), npu.F32))
	for i := range v {
		v[i] = float32(c.rank + i)
	}
	m := comm.Mem{Ptr: npu.Ptr{Buf: buf}, Elems: n, DType: npu.F32}
	err := c.rail.CopyIn(m.Ptr, stage.Host())
	if err == nil {
		err = comm.Wait(o.ctx)(c.AllReduce(o.ctx, m, comm.Sum))
	}
	if err == nil {
		err = c.rail.CopyOut(stage.Host(), m.Ptr)
	}
	if err == nil {
		err = c.rail.Sync(o.ctx)
	}
	for i := 0; i < n && err == nil; i++ {
		if want := float32(c.size*(c.size-1)/2 + c.size*i); v[i] != want {
			err = fmt.Errorf("HCCL sums wrongly: element %d is %g, want %g\nhint: this is an error of the installation; gotrain doctor says more", i, v[i], want)
		}
	}
	if err != nil {
		c.breakWith(err)
	}
	return err
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func random() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}
