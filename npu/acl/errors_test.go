//go:build cgo && linux

package acl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/acltest"
	"github.com/gotrain/gotrain/npu/acl/cann"
)

// workload uses all of a device and returns what failed, and what Close said.
func workload() (err, closing error) {
	limit, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	d, err := Open(npu.Options{})
	if err != nil {
		return err, nil
	}
	defer func() { closing = d.Close() }()
	desc := npu.D(npu.F32, 64)
	k, err := d.Compile(npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": "add"}, In: []npu.Desc{desc, desc}, Out: []npu.Desc{desc}})
	if err != nil {
		return err, nil
	}
	mem, err := d.Alloc(1 << 10)
	if err != nil {
		return err, nil
	}
	at := func(i int64) npu.Ptr { return npu.Ptr{Buf: mem, Off: 256 * i} }
	var ws npu.Ptr
	if k.Workspace() > 0 {
		b, err := d.Alloc(k.Workspace())
		if err != nil {
			return err, nil
		}
		ws.Buf = b
	}
	l, err := k.Bind([]npu.Ptr{at(0), at(1), at(2)}, ws)
	if err != nil {
		return err, nil
	}
	host, err := d.AllocHost(256)
	if err != nil {
		return err, nil
	}
	s, err := d.NewStream("s")
	if err != nil {
		return err, nil
	}
	o, err := d.NewStream("o")
	if err != nil {
		return err, nil
	}
	e, err := d.NewEvent()
	if err != nil {
		return err, nil
	}
	goMem := make([]byte, 256)
	s.Profile(true)
	errs := []error{s.CopyIn(at(0), host.Host()), s.CopyIn(at(1), goMem), s.Run([]npu.Launch{l, l}), s.Record(e), o.Wait(e), o.Copy(at(3), at(2), 256),
		o.CopyOut(goMem, at(3)), o.CopyOut(host.Host(), at(3)), s.Do(func() error { return nil }), e.Sync(limit), s.Sync(limit), o.Sync(limit)}
	s.Profile(false)
	e.At()
	_, _, _, err = d.Memory()
	errs = append(errs, err, e.Close(), s.Close(), o.Close(), k.Close(), host.Free(), mem.Free())
	return errors.Join(errs...), nil
}

// releases are functions whose failure leaves something behind in the fake, which does nothing when it fails.
func releases(name string) bool {
	return strings.Contains(name, "Destroy") || strings.Contains(name, "Free") || strings.Contains(name, "Reset")
}

// mayFail are functions whose failure has no consequence for the user.
var mayFail = []string{"aclGetRecentErrMsg", "aclrtGetVersion"}

// Every function that gotrain calls fails in turn, at its first, second and last call, with an ordinary and with a fatal code: an error names the
// function and the code and gives a hint, nothing hangs, nothing is left behind.
func TestEveryCallFails(t *testing.T) {
	fake := acltest.Use(t)
	err, closing := workload()
	must(t, err, closing)
	calls := fake.Stats().Calls
	if len(calls) < 30 {
		t.Fatalf("the workload calls only %d functions", len(calls))
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		if releases(name) {
			t.Run(name, func(t *testing.T) { acltest.Again(t, acltest.Version(), "TestReleaseFails", "ACL_FAIL="+name) })
			continue
		}
		for _, code := range []int{107000, 507899} {
			for _, n := range slices.Compact([]int64{1, min(2, calls[name]), calls[name]}) {
				if name == "aclInit" {
					continue // it is called once in a process: see TestInitFails
				}
				t.Run(fmt.Sprintf("%s/%d/%d", name, n, code), func(t *testing.T) {
					fake := acltest.Use(t)
					fake.Set("INJECT", fmt.Sprintf("%s:%d:%d", name, n, code))
					err, closing := workload()
					explains(t, name, code, errors.Join(err, closing), fake.Stats().Injected)
				})
			}
		}
	}
}

// explains checks an error that a failing function led to.
func explains(t *testing.T, name string, code int, err error, injected int64) {
	t.Helper()
	if injected == 0 {
		return // the number of polls differs from run to run
	}
	if slices.Contains(mayFail, name) {
		must(t, err)
		return
	}
	var e *cann.Error
	if !errors.As(err, &e) {
		t.Fatalf("no error of CANN: %v", err)
	}
	text := err.Error()
	if !strings.Contains(text, name) && !strings.HasPrefix(name, "aclCreate") && name != "aclrtGetSocName" || !strings.Contains(text, "hint: ") {
		t.Errorf("the error does not name %s or has no hint: %s", name, text)
	}
	if pointer := strings.HasPrefix(name, "aclCreate") || name == "aclrtGetSocName"; !pointer && int(e.Code) != code {
		t.Errorf("code %d: %s", e.Code, text)
	}
	if strings.Contains(text, "deadline exceeded") {
		t.Errorf("something hung: %s", text)
	}
}

// TestReleaseFails is run by TestEveryCallFails in a process of its own.
func TestReleaseFails(t *testing.T) {
	name := os.Getenv("ACL_FAIL")
	if name == "" {
		t.Skip("for TestEveryCallFails")
	}
	fake := acltest.Lenient(t)
	fake.Set("INJECT", name+":1:107000")
	err, closing := workload()
	explains(t, name, 107000, errors.Join(err, closing), fake.Stats().Injected)
}

func TestInitFails(t *testing.T) {
	if os.Getenv("ACL_FAIL") == "" {
		acltest.Again(t, acltest.Version(), "TestInitFails", "ACL_FAIL=aclInit")
		return
	}
	fake := acltest.Use(t)
	fake.Set("INJECT", "aclInit:1:500003")
	for range 2 { // it stays so
		if _, err := Open(npu.Options{}); err == nil || !strings.Contains(err.Error(), "npu:0: open: aclInit: error 500003") {
			t.Errorf("got %v", err)
		}
	}
}

// A kernel that fails on the device shows at the next wait, with the op, the code and CANN's text; the device is lost from then on, and whatever is called
// returns the first cause.
func TestDelayedError(t *testing.T) {
	d, fake := open(t)
	fake.Set("INJECT", "aclnnAdds:2:507015@")
	s, other := newStream(t, d, "s"), newStream(t, d, "other")
	y, l := adder(t, d, 4)
	e, err := d.NewEvent()
	must(t, err)
	must(t, s.Run([]npu.Launch{l, l, l}))
	_ = s.Record(e)
	err = s.Sync(ctx)
	var c *cann.Error
	if !errors.As(err, &c) || c.Code != 507015 || !c.Fatal || c.ExitCode() != 69 {
		t.Fatalf("sync: %v", err)
	}
	for _, want := range []string{"npu:0", "unary{", "507015 (exception of an AI core)", "hint: ", "debug_sync=true"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not have %q: %v", want, err)
		}
	}
	for what, got := range map[string]error{
		"sync":         s.Sync(ctx),
		"run":          s.Run([]npu.Launch{l}),
		"other":        other.CopyIn(y, []byte{1}),
		"other's":      other.Sync(ctx),
		"event":        e.Sync(ctx),
		"alloc":        second(d.Alloc(8)),
		"alloc host":   second(d.AllocHost(8)),
		"new stream":   second(d.NewStream("n")),
		"new event":    second(d.NewEvent()),
		"host func":    other.Do(func() error { return nil }),
		"copy of go's": other.CopyOut(make([]byte, 4), y),
	} {
		if !errors.As(got, &c) || c.Code != 507015 {
			t.Errorf("%s after the loss of the device: %v", what, got)
		}
	}
	if _, ok := d.Utilization(); ok {
		t.Error("a lost device has a utilization")
	}
	if !e.Done() {
		t.Error("an event of a lost device is never done")
	}
	must(t, d.Close())
}

func second[T any](_ T, err error) error { return err }

// With debug_sync the error is that of the launch which failed.
func TestDebugSync(t *testing.T) {
	d, fake := open(t, "debug_sync", "true")
	fake.Set("INJECT", "aclnnMul:1:507015@")
	s := newStream(t, d, "s")
	_, add := adder(t, d, 4)
	desc := npu.D(npu.F32, 4)
	k, err := d.Compile(npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": "mul"}, In: []npu.Desc{desc, desc}, Out: []npu.Desc{desc}})
	must(t, err)
	p := alloc(t, d, 512)
	mul, err := k.Bind([]npu.Ptr{p, p, p}, alloc(t, d, k.Workspace()+1))
	must(t, err)
	must(t, s.Run([]npu.Launch{add, mul, add}))
	err = s.Sync(ctx)
	if err == nil || !strings.Contains(err.Error(), "binary{fn=mul}") || !strings.Contains(err.Error(), "aclnnMul(self, other, out)") ||
		strings.Contains(err.Error(), "unary") {
		t.Errorf("got %v", err)
	}
}

// An error at a launch is that of the stream; the device goes on.
func TestLaunchFails(t *testing.T) {
	d, fake := open(t)
	s := newStream(t, d, "s")
	y, l := adder(t, d, 4)
	fake.Set("INJECT", "aclnnAdds:2:161002")
	_ = s.Run([]npu.Launch{l, l, l})
	err := s.Sync(ctx)
	var c *cann.Error
	if !errors.As(err, &c) || c.Op != "Adds" || c.Fatal || c.Detail == "" || !strings.Contains(err.Error(), "unary{") {
		t.Fatalf("got %v", err)
	}
	if got := read(t, s, y); got != 1 {
		t.Errorf("%v launches ran", got)
	}
}
