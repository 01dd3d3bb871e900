//go:build cgo && linux

package hccl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/internal/transcript"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl"
	"github.com/gotrain/gotrain/npu/acl/acltest"
	"github.com/gotrain/gotrain/npu/acl/cann"
	"github.com/gotrain/gotrain/npu/acl/fakecann"
)

// Tests with several processes start this test binary again; the environment tells the copy what to do.
const (
	envRole = "GOTRAIN_TEST_HCCL_ROLE"
	envJob  = "GOTRAIN_TEST_HCCL_JOB"
	envRank = "GOTRAIN_TEST_HCCL_RANK"
	envSize = "GOTRAIN_TEST_HCCL_SIZE"
	envDev  = "GOTRAIN_TEST_HCCL_DEVICE"
)

// roles are what a rank can do once the group is open.
var roles = map[string]func(ctx context.Context, c *Comm, d npu.Device) error{
	"worker": func(ctx context.Context, c *Comm, d npu.Device) error {
		tr := commtest.Transport{Device: func(comm.Communicator) npu.Device { return d }, Supports: Supports}
		return tr.Worker(ctx, c)
	},
	"loop": func(ctx context.Context, c *Comm, _ npu.Device) error {
		m := memory(c, 5000)
		for i := 0; ; i++ {
			ctx, cancel := comm.Patient(ctx, 3*time.Second, time.Minute)
			err := comm.Wait(ctx)(c.AllReduce(ctx, m, comm.Max))
			cancel()
			if err != nil {
				return err
			}
			if i == 20 {
				fmt.Println("RUNNING")
			}
		}
	},
}

// rank is one process: it prints its error.
func rank() int {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	number := func(name string) int { n, _ := strconv.Atoi(os.Getenv(name)); return n }
	err := func() error {
		control, err := shm.Join(ctx, shm.Config{Job: os.Getenv(envJob), Rank: number(envRank), Size: number(envSize)})
		if err != nil {
			return err
		}
		defer control.Close()
		d, err := acl.Open(npu.Options{Index: number(envDev)})
		if err != nil {
			control.Abort(err)
			return err
		}
		o := comm.Opening{Control: control, Device: d, Timeout: 20 * time.Second, Options: map[string]string{"hccl_buffer_mb": "8"}}
		c, err := New(ctx, o)
		if err != nil {
			return errors.Join(err, d.Close())
		}
		err = roles[os.Getenv(envRole)](ctx, c, d)
		if err != nil {
			return err // a rank that failed ends; it does not wait for its device
		}
		return errors.Join(c.Close(), d.Close())
	}()
	if err != nil {
		fmt.Println("ERROR", err)
		return 1
	}
	return 0
}

// processes starts a rank for each device.
func processes(t *testing.T, role string, devices ...int) ([]*exec.Cmd, []*transcript.Buffer) {
	t.Helper()
	home := os.Getenv(cann.EnvHome)
	if home == "" {
		acltest.Use(t) // skips
	}
	job := fmt.Sprintf("hccl-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	var cmds []*exec.Cmd
	var outs []*transcript.Buffer
	for r, d := range devices {
		cmd, out := exec.Command(os.Args[0]), &transcript.Buffer{}
		cmd.Env = append(os.Environ(), fakecann.Env(home)...)
		cmd.Env = append(cmd.Env, envRole+"="+role, envJob+"="+job, fmt.Sprint(envRank, "=", r), fmt.Sprint(envSize, "=", len(devices)), fmt.Sprint(envDev, "=", d))
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	return cmds, outs
}

// ends waits for a process.
func ends(t *testing.T, cmd *exec.Cmd, out *transcript.Buffer) (text string, ok bool) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return out.String(), err == nil
	case <-time.After(90 * time.Second):
		t.Fatal("a rank hangs")
		return "", false
	}
}

func TestProcesses(t *testing.T) {
	for _, n := range []int{2, 4} {
		cmds, outs := processes(t, "worker", []int{0, 1, 2, 3}[:n]...)
		for r := range cmds {
			text, ok := ends(t, cmds[r], outs[r])
			if !ok || strings.Contains(text, "violation") {
				t.Errorf("rank %d of %d: %s", r, n, text)
			}
		}
	}
}

// Two ranks on one device are named, before HCCL hangs.
func TestProcessesOnOneDevice(t *testing.T) {
	cmds, outs := processes(t, "worker", 0, 1, 0)
	for r := range cmds {
		text, ok := ends(t, cmds[r], outs[r])
		if ok || !strings.Contains(text, "ranks 0 (pid") || !strings.Contains(text, "and 2 (pid") || !strings.Contains(text, "are on the same device, 0") {
			t.Errorf("rank %d: %s", r, text)
		}
	}
}

// A rank that is killed, or frozen, in the middle of collectives is named by the others.
func TestPeerEnds(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		want   string
	}{{syscall.SIGKILL, "rank 1 is gone: its process"}, {syscall.SIGSTOP, "waiting for ranks [1]"}} {
		t.Run(c.signal.String(), func(t *testing.T) {
			cmds, outs := processes(t, "loop", 0, 1, 2)
			for until := time.Now().Add(60 * time.Second); !strings.Contains(outs[1].String(), "RUNNING"); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("the ranks do not start: %v", outs)
				}
			}
			if err := cmds[1].Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			named := false
			for _, r := range []int{0, 2} {
				text, ok := ends(t, cmds[r], outs[r])
				if ok || !strings.Contains(text, "ERROR") {
					t.Errorf("rank %d: %s", r, text)
				}
				named = named || strings.Contains(text, c.want)
			}
			if !named {
				t.Errorf("want %q: %v", c.want, outs)
			}
			_ = cmds[1].Process.Kill()
			_ = cmds[1].Wait() // its verdict is clear
		})
	}
}
