package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/abi/headers"
	"github.com/gotrain/gotrain/npu/acl/doctor"
	"github.com/gotrain/gotrain/npu/acl/doctor/kernels"
	"github.com/gotrain/gotrain/npu/nputest"
	"github.com/gotrain/gotrain/train"
)

// doctorFlags are those of gotrain doctor.
type doctorFlags struct {
	json, brief bool
	root        string
	device      string
	kinds       []string
	abi         bool
	report      string
	probe       bool
}

// bareDevice is the value of --device without one.
const bareDevice = "npu"

func (a *app) doctorCmd() *cobra.Command {
	var f doctorFlags
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Examine this machine: Ascend NPUs, driver, CANN, network, environment",
		Long: `Examine this machine for training on Ascend NPUs: device files and permissions, driver, firmware and CANN and whether they fit together,
what npu-smi and hccn_tool say, whether libraries can be loaded, what the environment means, and what earlier runs left behind. Each finding
has a severity and, where there is something to do, a remedy. Nothing is changed. A machine without NPUs is not broken: one sentence says so,
and the host is examined.

--device runs every kernel on a device and compares it with the plain Go kernels, in all types: for an NPU with prepared and with fresh
executors, deterministic and not. It takes about a minute. --abi compares gotrain's tables of CANN's functions with the headers that are
installed. --report writes everything to a file that can be attached to a report of a problem: names and addresses of hosts are masked in it.

Exit codes: 0 without errors, also with warnings; 69 with an error; 70 if a kernel is wrong or a table differs from the headers.`,
		Example: `  gotrain doctor
  gotrain doctor --brief                      # only what is not ok
  gotrain doctor --device npu --report doctor.txt
  gotrain doctor --device=npu:3 --kinds conv2d,matmul
  gotrain doctor --abi
  gotrain doctor --json | jq '.findings[] | select(.severity == "error")'
  gotrain doctor --root ./recorded            # files and outputs copied from another machine`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && f.device == bareDevice { // --device npu: a flag that may stand alone does not take the next word
				return nil
			}
			return cobra.NoArgs(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.device = args[0]
			}
			if f.probe {
				return probe(c.InOrStdin(), os.NewFile(3, "answer"))
			}
			return a.doctor(c.Context(), f)
		},
	}
	c.Flags().BoolVar(&f.json, "json", false, "print as JSON")
	c.Flags().BoolVar(&f.brief, "brief", false, "print only what is not ok")
	c.Flags().StringVar(&f.root, "root", "", "examine a recorded machine, a `folder` with copies of its files and of the output of commands")
	c.Flags().StringVar(&f.device, "device", "", "run all kernels on a device: `npu`, npu:3, cpu or ref")
	c.Flags().Lookup("device").NoOptDefVal = bareDevice
	c.Flags().StringSliceVar(&f.kinds, "kinds", nil, "with --device: only kernels of these `kinds`, such as conv2d,matmul")
	c.Flags().BoolVar(&f.abi, "abi", false, "compare the tables of functions with installed headers and libraries")
	c.Flags().StringVar(&f.report, "report", "", "write everything to this `file`, without names and addresses of hosts")
	c.Flags().BoolVar(&f.probe, "probe", false, "answer one question; gotrain doctor asks it")
	if err := c.Flags().MarkHidden("probe"); err != nil {
		panic(err) // a programmer's mistake
	}
	c.MarkFlagsMutuallyExclusive("root", "device")
	c.MarkFlagsMutuallyExclusive("root", "abi")
	if err := c.RegisterFlagCompletionFunc("device", cobra.FixedCompletions([]string{"npu", "cpu", "ref"}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
	if err := c.MarkFlagDirname("root"); err != nil {
		panic(err)
	}
	return c
}

// doctor examines, prints and returns an error with the exit code.
func (a *app) doctor(ctx context.Context, f doctorFlags) error {
	family, index, err := f.which()
	if err != nil {
		return launch.WithCode(launch.ExitUsage, err)
	}
	var sys doctor.System = newThisMachine()
	if f.root != "" {
		root, err := os.OpenRoot(f.root)
		if err != nil {
			return launch.WithCode(launch.ExitNoInput, fmt.Errorf("--root: %w", err))
		}
		defer root.Close()
		sys = doctor.Recorded{Root: root.FS()}
	}
	program := "gotrain " + train.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	r := doctor.Check(ctx, sys, doctor.Options{Program: program, UID: os.Getuid(), PID: os.Getpid()})
	if f.device != "" {
		k, err := a.kernels(ctx, family, index, f.kinds)
		if err != nil {
			return err
		}
		r.Kernels = k
		for _, left := range k.Left {
			r.Findings = append(r.Findings, doctor.Finding{Group: "kernels", Severity: doctor.Warning, What: "not run: " + left,
				Remedy: "run it again while nothing else uses the machine"})
		}
	}
	if f.abi {
		h, err := headers.Run(ctx, headers.Options{Roots: headers.Installed(r.Toolkit)})
		if err != nil {
			return err
		}
		r.ABI = h
	}
	if f.report != "" {
		if err := writeReport(f.report, r); err != nil {
			return launch.WithCode(launch.ExitStorage, err)
		}
		fmt.Fprintf(a.err, "the report is in %s\n", f.report)
	}
	if f.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else if err := a.printReport(r, f.brief); err != nil {
		return err
	}
	return launch.WithCode(r.ExitCode(), verdict(r))
}

// which takes --device apart, and checks --kinds.
func (f doctorFlags) which() (family string, index int, err error) {
	for _, k := range f.kinds {
		if !slices.Contains(nputest.Kinds(), k) {
			return "", 0, fmt.Errorf("--kinds: there is no kind %q\nhint: kinds are %s", k, strings.Join(nputest.Kinds(), ", "))
		}
	}
	switch {
	case f.device == "" && f.kinds != nil:
		return "", 0, errors.New("--kinds needs --device\nhint: add --device npu")
	case f.device == "":
		return "", 0, nil
	}
	family, number, numbered := strings.Cut(f.device, ":")
	if !slices.Contains(npu.Families(), family) {
		return "", 0, fmt.Errorf("--device=%s: no such device\nhint: use one of %s", f.device, strings.Join(npu.Families(), ", "))
	}
	if numbered {
		if index, err = strconv.Atoi(number); err != nil || index < 0 {
			return "", 0, fmt.Errorf("--device=%s: %q is not the number of a device\nhint: as in npu:3, counted from 0", f.device, number)
		}
	}
	return family, index, nil
}

// verdict is an error without text: the report has said everything.
func verdict(r *doctor.Report) error {
	if r.ExitCode() == 0 {
		return nil
	}
	return errors.New("")
}

// printReport prints with colours on a terminal. The texts of a report are without control characters.
func (a *app) printReport(r *doctor.Report, brief bool) error {
	s := doctor.Style{Brief: brief}
	out := a.out
	if file, ok := a.rawOut.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		s.Colour, out = true, a.rawOut
	}
	_, err := io.WriteString(out, r.Text(s))
	return err
}

// writeReport writes the masked report: text for people, then JSON.
func writeReport(file string, r *doctor.Report) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	text := doctor.Mask(r.Text(doctor.Style{})+"\n"+string(b)+"\n", map[string]string{host: "HOST", home: "HOME"})
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

// kernels runs the suite on a device, with a line of progress on a terminal.
func (a *app) kernels(ctx context.Context, family string, index int, kinds []string) (*kernels.Result, error) {
	o := kernels.Options{Modes: kernels.Modes(family), Kinds: kinds, Limit: kernelTime, Open: func(extra map[string]string) (npu.Device, error) {
		return npu.Open(family, npu.Options{Index: index, Extra: extra})
	}}
	if file, ok := a.rawErr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		o.Progress = func(done, total int, what string) { fmt.Fprintf(file, "\r\x1b[K%d of %d: %s", done, total, what) }
		defer fmt.Fprint(file, "\r\x1b[K")
	}
	return kernels.Run(ctx, o)
}

// kernelTime limits the suite on a device that is slow.
const kernelTime = 90 * time.Second
