package tune

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gotrain/gotrain/internal/usercache"
	"github.com/gotrain/gotrain/npu"
)

// faked is a stopwatch by which the entrant of this name is twice as fast as the others.
func faked(fast string, count *atomic.Int64) func(context.Context, Contest) ([]Timing, error) {
	return func(_ context.Context, c Contest) ([]Timing, error) {
		count.Add(1)
		var ts []Timing
		for _, e := range c.Entrants {
			took := 2 * time.Millisecond
			if e.Name == fast {
				took = time.Millisecond
			}
			ts = append(ts, Timing{e.Name, took})
		}
		return ts, nil
	}
}

func choose(t *testing.T, tu Tuner, dev npu.Device, ops []npu.Op) (Choices, Report) {
	t.Helper()
	c, rep, err := tu.Choose(context.Background(), dev, nil, ops)
	if err != nil {
		t.Fatal(err)
	}
	return c, rep
}

// Something is measured once; then everybody on the same kind of machine has the same answer, whatever they would measure.
func TestOnceAMachine(t *testing.T) {
	dev, _ := open(t, "a")
	var n atomic.Int64
	said := 0
	tu := Tuner{Places: places(t), Time: faked(npu.Winograd4, &n), Say: func(string) { said++ }}
	ops := append(conv(8, 4, 6), conv(8, 4, 6)...)
	c, rep := choose(t, tu, dev, ops)
	if rep.Contests != 3 || rep.Measured != 3 || n.Load() != 3 || said != 1 || rep.Lost != nil || rep.Damaged != nil {
		t.Errorf("the first time: %+v, measured %d, said %d", rep, n.Load(), said)
	}
	if a := c.Algorithm(conv(8, 4, 6)[1]); a != npu.Winograd4 {
		t.Errorf("chose %q", a)
	}
	tu.Time = faked(npu.Direct, &n)
	again, rep := choose(t, tu, dev, ops)
	if rep.Measured != 0 || said != 1 || !maps.Equal(again.Algorithms, c.Algorithms) {
		t.Errorf("the second time: %+v, %v", rep, again)
	}
	more, rep := choose(t, tu, dev, append(ops, conv(8, 4, 9)...)) // those of another network are added
	if rep.Measured != 3 || more.Algorithm(ops[0]) != npu.Winograd4 || more.Algorithm(conv(8, 4, 9)[0]) != npu.Direct {
		t.Errorf("another network: %+v, %v", rep, more)
	}
	other, _ := open(t, "the same with another instruction set")
	if c, rep := choose(t, tu, other, ops); rep.Measured != 3 || c.Algorithm(ops[0]) != npu.Direct {
		t.Errorf("another instruction set: %+v, %v", rep, c)
	}
	if got, want := more.Sentence(), "direct for 3, "+npu.Winograd4+" for 3 of 6 distinct convolutions with a choice"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Two processes that start together decide alike, and only one of them measures.
func TestTwoAtOnce(t *testing.T) {
	dev, _ := open(t, "a")
	where := places(t)
	var n atomic.Int64
	var got [2]Choices
	var wg sync.WaitGroup
	for i, fast := range []string{npu.Direct, npu.Winograd4} {
		wg.Go(func() {
			measure := faked(fast, &n)
			tu := Tuner{Places: where, Time: func(ctx context.Context, c Contest) ([]Timing, error) {
				time.Sleep(5 * time.Millisecond) // the other one comes meanwhile
				return measure(ctx, c)
			}}
			var err error
			if got[i], _, err = tu.Choose(context.Background(), dev, nil, conv(8, 4, 6)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n.Load() != 3 || len(got[0].Algorithms) != 3 || !maps.Equal(got[0].Algorithms, got[1].Algorithms) {
		t.Errorf("measured %d times: %v and %v", n.Load(), got[0], got[1])
	}
}

// Processes with other numbers of threads have files of their own, but measure one after the other, for each takes processors from the other.
func TestOneMeasuresAtATime(t *testing.T) {
	where := places(t)
	var at, most atomic.Int64
	var wg sync.WaitGroup
	for i, machine := range []string{"1 thread", "2 threads", "3 threads"} {
		dev, _ := open(t, machine)
		fast := []string{npu.Direct, npu.Winograd4}[i%2]
		wg.Go(func() {
			var n atomic.Int64
			measure := faked(fast, &n)
			tu := Tuner{Places: where, Time: func(ctx context.Context, c Contest) ([]Timing, error) {
				if now := at.Add(1); now > most.Load() {
					most.Store(now)
				}
				time.Sleep(2 * time.Millisecond) // the others come meanwhile
				defer at.Add(-1)
				return measure(ctx, c)
			}}
			c, _, err := tu.Choose(context.Background(), dev, nil, conv(8, 4, 6))
			if err != nil || n.Load() != 3 || c.Algorithm(conv(8, 4, 6)[0]) != fast {
				t.Errorf("%s: measured %d: %v %v", machine, n.Load(), c, err)
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d measured at a time", most.Load())
	}
	for _, machine := range []string{"1 thread", "2 threads", "3 threads"} {
		dev, _ := open(t, machine)
		if _, rep := choose(t, Tuner{Places: where}, dev, conv(8, 4, 6)); rep.Measured != 0 || rep.Damaged != nil {
			t.Errorf("%s: %+v", machine, rep)
		}
	}
}

// Two that store at once lose nothing, and the first one's answer to a question stays.
func TestTwoStoreAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	var list []Contest
	for i := range 16 {
		list = append(list, Contest{Key: fmt.Sprint(i), Entrants: []Entrant{{Name: "a"}, {Name: "b"}}})
	}
	list = append(list, Contest{Key: "both", Entrants: list[0].Entrants})
	got := make([]string, 16)
	for i := range got {
		wg.Go(func() {
			choice := []string{"a", "b"}[i%2]
			all, err := shelf{dir}.add(context.Background(), "m", map[string]answer{fmt.Sprint(i): {Choice: choice}, "both": {Choice: choice}}, list)
			if err != nil {
				t.Error(err)
			}
			got[i] = all["both"].Choice
		})
	}
	wg.Wait()
	all, err := shelf{dir}.read("m")
	if err != nil || len(all) != 17 {
		t.Errorf("%d answers, %v", len(all), err)
	}
	for i, choice := range got {
		if choice != all["both"].Choice {
			t.Errorf("%d uses %q, not %q", i, choice, all["both"].Choice)
		}
	}
}

// The date of a file does not matter: a clock may have gone back since, or be wrong.
func TestWrongClock(t *testing.T) {
	dev, _ := open(t, "a")
	var n atomic.Int64
	tu := Tuner{Places: places(t), Time: faked(npu.Winograd4, &n)}
	choose(t, tu, dev, conv(8, 4, 6))
	dir, err := tu.Places[0].Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{time.Unix(0, 0), time.Now().AddDate(10, 0, 0)} {
		if err := os.Chtimes(shelf{dir}.path("a"), at, at); err != nil {
			t.Fatal(err)
		}
		if c, rep := choose(t, tu, dev, conv(8, 4, 6)); rep.Measured != 0 || rep.Damaged != nil || c.Algorithm(conv(8, 4, 6)[0]) != npu.Winograd4 {
			t.Errorf("%v: %+v", at, rep)
		}
	}
}

// A damaged file is replaced, and so is one of another machine or version.
func TestDamaged(t *testing.T) {
	dev, _ := open(t, "a")
	var n atomic.Int64
	tu := Tuner{Places: places(t), Time: faked(npu.Winograd4, &n)}
	dir, err := tu.Places[0].Make()
	if err != nil {
		t.Fatal(err)
	}
	file := shelf{dir}.path("a")
	for _, text := range []string{"", "{", `{"version":1,"machine":"b","answers":{}}`, `{"version":0,"machine":"a"}`, strings.Repeat("[", maxPage+1)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, rep := choose(t, tu, dev, conv(8, 4, 6)); rep.Measured != 3 || rep.Damaged == nil || rep.Lost != nil {
			t.Errorf("%.40q: %+v", text, rep)
		}
		if _, rep := choose(t, tu, dev, conv(8, 4, 6)); rep.Measured != 0 || rep.Damaged != nil {
			t.Errorf("%.40q was not replaced: %+v", text, rep)
		}
	}
	// An algorithm that does not exist any more is no answer.
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(raw), `"choice": "`+npu.Winograd4+`"`, `"choice": "fft"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, rep := choose(t, tu, dev, conv(8, 4, 6)); rep.Measured != 3 || c.Algorithm(conv(8, 4, 6)[0]) == "fft" {
		t.Errorf("an unknown algorithm: %+v %v", rep, c)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// Without a place to keep results nothing is measured; the second place serves where the first cannot.
func TestUnwritable(t *testing.T) {
	dev, _ := open(t, "a")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bad := []usercache.Place{{Err: fs.ErrPermission}, {Base: filepath.Join(file, "cache")}}
	var n atomic.Int64
	tu := Tuner{Places: bad, Time: faked(npu.Winograd4, &n)}
	c, rep := choose(t, tu, dev, conv(8, 4, 6))
	if len(c.Algorithms) > 0 || n.Load() > 0 || !errors.Is(rep.Lost, fs.ErrPermission) {
		t.Errorf("%v %+v, measured %d", c, rep, n.Load())
	}
	tu.Places = append(bad, places(t)...)
	if c, rep := choose(t, tu, dev, conv(8, 4, 6)); len(c.Algorithms) != 3 || rep.Lost != nil {
		t.Errorf("%v %+v", c, rep)
	}
}

// What a device lacks is dropped, and what is forced needs no measurement.
func TestForced(t *testing.T) {
	dev, _ := open(t, "a")
	ops := conv(8, 4, 6)
	c := Forced(dev, ops, "winograd")
	if len(c.Algorithms) != 3 || c.Algorithm(ops[2]) != npu.Winograd4 {
		t.Errorf("%v", c)
	}
	if gone := c.Without(dev, ops); len(gone) > 0 {
		t.Errorf("dropped %v", gone)
	}
	old := Choices{Algorithms: map[string]string{}}
	for _, op := range ops {
		old.Algorithms[Key(op)] = "winograd4"
	}
	if gone := old.Without(dev, append(ops, ops...)); len(gone) != 3 || old.Algorithm(ops[2]) != npu.Winograd4 {
		t.Errorf("an earlier version's algorithm: replaced %v, %v", gone, old)
	}
	if some := old.Only([]string{Key(ops[0]), "another"}); len(some.Algorithms) != 1 || some.Algorithm(ops[0]) != npu.Winograd4 {
		t.Errorf("a part of it: %v", some)
	}
	for _, c := range []Choices{c, {Algorithms: map[string]string{Key(ops[0]): "winograd4", Key(ops[1]): "winograd4", Key(ops[2]): "fft"}}} {
		if gone := c.Without(dev.Device, ops); len(gone) != 3 || c.Algorithm(ops[0]) != npu.Direct || c.Algorithm(ops[2]) != npu.Direct {
			t.Errorf("a device without a choice: replaced %v, %v", gone, c)
		}
	}
}
