package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/ddp/comm/hccl/settings"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/cann"
	"github.com/gotrain/gotrain/npu/acl/doctor"
)

// thisMachine is this machine, for the checks.
type thisMachine struct{ root fs.FS }

func newThisMachine() thisMachine { return thisMachine{os.DirFS("/")} }

// FS is the file system.
func (m thisMachine) FS() fs.FS { return m.root }

// Access asks the system, which knows groups and capabilities.
func (thisMachine) Access(name string) error { return unix.Access(name, unix.R_OK|unix.W_OK) }

// Env is the environment of this process.
func (thisMachine) Env() map[string]string { return settings.Environ() }

// commandFolders are searched after PATH: the driver's tools are there, and users' PATH often lacks them.
var commandFolders = []string{"/usr/local/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"}

// Command runs a command with a limit of time and of output.
func (thisMachine) Command(ctx context.Context, name string, args ...string) (string, error) {
	file, err := exec.LookPath(name)
	for i := 0; err != nil && i < len(commandFolders) && !strings.Contains(name, "/"); i++ {
		file, err = exec.LookPath(filepath.Join(commandFolders[i], name))
	}
	if err != nil && strings.Contains(name, "/") { // elsewhere than usual
		file, err = exec.LookPath(filepath.Base(name))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, file, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s does not end within 20 s", name)
	case errors.As(err, &exit):
		text := strings.TrimSpace(string(out) + " " + string(exit.Stderr))
		return string(out), fmt.Errorf("%w: %.300s", err, text)
	}
	return string(out), err
}

// limits of time for each stage of probing. The first use of a device takes seconds, and there may be 16.
var probeLimits = map[string]time.Duration{doctor.StageHost: time.Minute, doctor.StageLibraries: time.Minute, doctor.StageDCMI: 20 * time.Second,
	doctor.StageDevices: 3 * time.Minute}

// Probe starts this program once more. The answer comes through a pipe of its own, because libraries print to standard output.
func (thisMachine) Probe(ctx context.Context, q doctor.Request) (*doctor.Probe, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	question, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	in, answer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	limit := probeLimits[q.Stage]
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "doctor", "--probe")
	cmd.Stdin, cmd.Stderr, cmd.ExtraFiles, cmd.WaitDelay = bytes.NewReader(question), &said, []*os.File{answer}, time.Second
	if err := cmd.Start(); err != nil {
		answer.Close()
		return nil, err
	}
	answer.Close()
	text := make(chan []byte, 1)
	go func() { // ends when the process has ended, or the pipe is closed below
		b, _ := io.ReadAll(in)
		text <- b
	}()
	err = cmd.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("no answer within %v", limit)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return nil, fmt.Errorf("%w: %.200s", err, lines[0])
	}
	p := &doctor.Probe{}
	if err := json.Unmarshal(<-text, p); err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	return p, nil
}

// probe answers a question in a process of its own.
func probe(in io.Reader, out io.WriteCloser) error {
	var q doctor.Request
	if err := json.NewDecoder(in).Decode(&q); err != nil {
		return err
	}
	p := &doctor.Probe{}
	switch q.Stage {
	case doctor.StageHost:
		probeHost(p)
	case doctor.StageLibraries:
		for _, l := range q.Libraries {
			missing, err := cann.Probe(l.File, l.Symbols)
			got := doctor.Loaded{File: l.File, Missing: missing}
			if err != nil {
				got.Error = err.Error()
			}
			p.Libraries = append(p.Libraries, got)
		}
	case doctor.StageDCMI:
		cards, err := cann.ReadDCMI(q.DCMI)
		for _, c := range cards {
			p.Cards = append(p.Cards, doctor.Card(c))
		}
		if err != nil {
			p.Error = err.Error()
		}
	case doctor.StageDevices:
		probeDevices(p)
	default:
		return fmt.Errorf("no stage %q", q.Stage)
	}
	if err := json.NewEncoder(out).Encode(p); err != nil {
		return err
	}
	return out.Close()
}

func probeHost(p *doctor.Probe) {
	p.PageSize, p.Arch = os.Getpagesize(), runtime.GOARCH
	d, err := npu.Open("cpu", npu.Options{})
	if err != nil {
		p.CPUError, _, _ = strings.Cut(err.Error(), "\n")
		return
	}
	p.CPU = d.Info().Detail
	if err := d.Close(); err != nil {
		p.CPUError = err.Error()
	}
}

// probeDevices opens each NPU, as a rank would.
func probeDevices(p *doctor.Probe) {
	n, err := cann.CountDevices()
	if err != nil {
		p.Error = err.Error()
		return
	}
	for i := range n {
		got := doctor.Device{Index: i}
		d, err := npu.Open("npu", npu.Options{Index: i})
		if err != nil {
			got.Error = err.Error()
			p.Devices = append(p.Devices, got)
			continue
		}
		info := d.Info()
		got.Detail = info.Detail
		got.SoC, _, _ = strings.Cut(info.Detail, " (")
		for _, t := range info.Compute {
			got.Types = append(got.Types, t.String())
		}
		if err := d.Close(); err != nil {
			got.Error = err.Error()
		}
		p.Devices = append(p.Devices, got)
	}
}
