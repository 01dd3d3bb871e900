package tune

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/internal/usercache"
	"github.com/gotrain/gotrain/npu"
)

// Version is part of the name of a file of results. Raise it when kernels that take part in contests have changed their speed.
const Version = 4

// Identified is a device that tells what its speed depends on: processor, instruction set, library, number of threads. Of other devices, Info does.
type Identified interface {
	Identity() string
}

// Tuner makes choices. The zero value is ready to use.
type Tuner struct {
	Places []usercache.Place // where results are kept; nil: the user's cache
	// Say receives one sentence when something has to be measured; nil: nobody.
	Say func(string)
	// Time measures a contest, in place of the package's own way; for tests.
	Time func(ctx context.Context, c Contest) ([]Timing, error)
}

// Contest is one question: which of the entrants is fastest. The first wins ties.
type Contest struct {
	Key      string // Key of the op, and the form in which the device executes it
	Entrants []Entrant

	op string // Key of the op
}

// Entrant is an op with one of its algorithms.
type Entrant struct {
	Name string
	Op   npu.Op
}

// Report tells how choices came about.
type Report struct {
	Contests int           // questions that had more than one possible answer
	Measured int           // of them, those that were measured now
	Took     time.Duration // for measuring
	Lost     error         // why nothing could be kept, and so nothing was measured; nil: all is well
	Damaged  error         // why earlier results could not be read
}

// Choose returns the fastest algorithm of each op. The ops have concrete layouts, as in a plan without choices. Measuring takes place on the stream,
// or, if it is nil, on one of its own.
func (t *Tuner) Choose(ctx context.Context, dev npu.Device, s npu.Stream, ops []npu.Op) (Choices, Report, error) {
	list := questions(dev, ops)
	what := fmt.Sprintf("%d convolutions", len(list))
	if len(list) == 1 {
		what = "a convolution"
	}
	got, rep, err := t.answers(ctx, dev, s, list, "the fastest algorithm of "+what)
	c := Choices{}
	if len(got) > 0 {
		c.Algorithms = got
	}
	return c, rep, err
}

// Known returns what earlier measurements say of the ops, and for how many distinct ones that have a choice they say nothing. It measures nothing.
func (t *Tuner) Known(dev npu.Device, ops []npu.Op) (c Choices, unknown int) {
	list := questions(dev, ops)
	known, _ := t.recall(identity(dev), list) // what cannot be read is not known
	if got := picked(list, known); len(got) > 0 {
		c.Algorithms = got
	}
	return c, len(missing(list, known))
}

// questions are the contests of ops that have a choice.
func questions(dev npu.Device, ops []npu.Op) (list []Contest) {
	keys, names, first := common(dev, ops)
	for _, key := range keys {
		if len(names[key]) > 1 {
			list = append(list, question(dev, first[key], names[key]))
		}
	}
	return list
}

// answers answers all questions, by what is kept or by measuring. Without a place to keep results, it knows only what others have kept.
func (t *Tuner) answers(ctx context.Context, dev npu.Device, s npu.Stream, list []Contest, what string) (map[string]string, Report, error) {
	rep := Report{Contests: len(list)}
	if len(list) == 0 {
		return nil, rep, nil
	}
	machine := identity(dev)
	known, _ := t.recall(machine, list) // read again below, where a damaged file is told
	if len(missing(list, known)) == 0 {
		return picked(list, known), rep, nil
	}
	sh, err := openShelf(t.places())
	if err != nil {
		rep.Lost = err
		return picked(list, known), rep, nil
	}
	release, err := sh.lock(ctx, measuring)
	if err != nil {
		rep.Lost = err
		return picked(list, known), rep, ctx.Err()
	}
	defer release()
	known, rep.Damaged = t.recall(machine, list) // another process may have measured meanwhile
	open := missing(list, known)
	if len(open) == 0 {
		return picked(list, known), rep, nil
	}
	if t.Say != nil {
		t.Say("measuring " + what + ", once for this machine")
	}
	begin := time.Now()
	fresh, err := t.measure(ctx, dev, s, open)
	if err != nil {
		return nil, rep, fmt.Errorf("tune: %w", err)
	}
	rep.Measured, rep.Took = len(open), time.Since(begin)
	kept, err := sh.add(ctx, machine, fresh, list)
	if err != nil {
		rep.Lost = err
	}
	fill(known, kept, open) // what another process has stored first wins over what this one has measured
	return picked(list, known), rep, nil
}

func (t *Tuner) places() []usercache.Place {
	if t.Places == nil {
		return usercache.Places("tune")
	}
	return t.Places
}

// recall returns what is kept of a machine, also in places that can be read but not written; earlier places win. The error says which files cannot be used.
func (t *Tuner) recall(machine string, list []Contest) (known map[string]answer, err error) {
	known = map[string]answer{}
	for _, p := range t.places() {
		dir, lacks := p.Find()
		if lacks != nil {
			continue // nothing is kept there
		}
		page, bad := shelf{dir}.read(machine)
		err = errors.Join(err, bad)
		fill(known, page, missing(list, known))
	}
	return known, err
}

// fill adds the usable answers to open questions.
func fill(known, more map[string]answer, open []Contest) {
	for _, c := range open {
		if a, ok := more[c.Key]; ok && c.index(a.Choice) >= 0 {
			known[c.Key] = a
		}
	}
}

// measure holds the contests.
func (t *Tuner) measure(ctx context.Context, dev npu.Device, s npu.Stream, list []Contest) (map[string]answer, error) {
	if s == nil && t.Time == nil {
		own, err := dev.NewStream("measure")
		if err != nil {
			return nil, err
		}
		defer own.Close()
		s = own
	}
	m := &meter{dev: dev, stream: s}
	watch := t.Time
	if watch == nil {
		watch = m.contest
	}
	out := map[string]answer{}
	for _, c := range list {
		ts, err := watch(ctx, c)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", c.Key, err), m.close())
		}
		a := answer{Choice: ts[Decide(ts)].Name, Nanos: map[string]int64{}}
		for _, x := range ts {
			a.Nanos[Name(x.Name)] = x.Best.Nanoseconds()
		}
		out[c.Key] = a
	}
	return out, m.close()
}

// missing lists the contests without a usable answer: what another version of the library offered may no longer exist.
func missing(list []Contest, known map[string]answer) (open []Contest) {
	for _, c := range list {
		if a, ok := known[c.Key]; !ok || c.index(a.Choice) < 0 {
			open = append(open, c)
		}
	}
	return open
}

// picked is the choice by question.
func picked(list []Contest, known map[string]answer) map[string]string {
	out := map[string]string{}
	for _, c := range list {
		if a, ok := known[c.Key]; ok && c.index(a.Choice) >= 0 {
			out[c.op] = a.Choice
		}
	}
	return out
}

func (c Contest) index(name string) int {
	for i, e := range c.Entrants {
		if e.Name == name {
			return i
		}
	}
	return -1
}

// identity is what the speed of a device depends on.
func identity(dev npu.Device) string {
	if i, ok := dev.(Identified); ok {
		return i.Identity()
	}
	info := dev.Info()
	return info.Name + ", " + info.Detail
}
