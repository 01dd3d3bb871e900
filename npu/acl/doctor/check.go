package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/gotrain/gotrain/npu/acl/lower"
)

// Options of a check.
type Options struct {
	Program string // version and platform, for the report
	UID     int    // whose leftovers count
	PID     int    // of this process, which is none
}

// exam is a check under way. Each part appends findings and leaves what later parts need.
type exam struct {
	ctx  context.Context
	sys  System
	fs   fs.FS
	env  map[string]string
	o    Options
	r    *Report
	part string

	nodes  []int  // numbers of /dev/davinciN
	smi    *smi   // npu-smi's table; nil if there is none
	smiErr error  // of npu-smi, where it is there and fails
	root   string // of the toolkit in use; ""
	libs   string // its folder of libraries
	family lower.Family
	absent bool // no NPU, and nothing of CANN
}

// Check examines a machine. It never fails: what cannot be read is a finding.
func Check(ctx context.Context, sys System, o Options) *Report {
	x := &exam{ctx: ctx, sys: sys, fs: sys.FS(), env: sys.Env(), o: o, r: &Report{Program: o.Program, Findings: []Finding{}}}
	x.presence()
	for _, p := range []struct {
		name string
		do   func()
		npu  bool // of no interest without one
	}{
		{"host", x.host, false},
		{"devices", x.devices, true},
		{"driver", x.driver, true},
		{"CANN", x.toolkit, true},
		{"libraries", x.libraries, true},
		{"network", x.network, true},
		{"environment", x.environment, true},
		{"leftovers", x.leftovers, false},
	} {
		if x.part = p.name; !p.npu || !x.absent {
			p.do()
		}
	}
	x.summarise()
	return x.r
}

func (x *exam) summarise() {
	r := x.r
	var what string
	switch {
	case x.absent:
		what = "This machine has no NPU (no /dev/davinci*, no npu-smi, no CANN): training runs on its processors."
	case r.NPUs == 1:
		what = "1 NPU"
	default:
		what = fmt.Sprintf("%d NPUs", r.NPUs)
	}
	if !x.absent {
		if r.SoC != "" {
			what += ", " + r.SoC
		}
		if r.CANN != "" {
			what += ", CANN " + r.CANN
		}
	}
	r.Summary = what
}

func (x *exam) add(s Severity, where, remedy, format string, args ...any) {
	x.r.Findings = append(x.r.Findings, Finding{x.part, s, printable(fmt.Sprintf(format, args...)), printable(where), printable(remedy)})
}

func (x *exam) ok(where, format string, args ...any)   { x.add(OK, where, "", format, args...) }
func (x *exam) note(where, format string, args ...any) { x.add(Note, where, "", format, args...) }

// printable escapes what must not go to a terminal: texts come from files, libraries and commands.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029':
			return '?'
		}
		return r
	}, strings.TrimSpace(s))
}

// rel is a path of the machine as package fs wants it.
func rel(name string) string {
	if r := strings.TrimPrefix(path.Clean("/"+name), "/"); r != "" {
		return r
	}
	return "."
}

// text reads a small file; "" if it cannot be read.
func (x *exam) text(name string) string {
	f, err := x.fs.Open(rel(name))
	if err != nil {
		return ""
	}
	defer f.Close()
	return strings.TrimSpace(readSome(f))
}

func (x *exam) exists(name string) bool {
	_, err := fs.Stat(x.fs, rel(name))
	return err == nil
}

func (x *exam) glob(pattern string) []string {
	l, _ := fs.Glob(x.fs, rel(pattern))
	return l
}

// sub is the file system below a folder; empty if there is none.
func (x *exam) sub(dir string) fs.FS {
	s, err := fs.Sub(x.fs, rel(dir))
	if err != nil {
		return x.fs
	}
	return s
}

// probe runs a stage, and makes a finding of a stage that fails.
func (x *exam) probe(q Request, what string) *Probe {
	p, err := x.sys.Probe(x.ctx, q)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // a record without it
	case err != nil:
		x.add(Error, "gotrain doctor, in a process of its own",
			"this is often a driver that hangs or does not fit: check the findings on driver and firmware, "+
				"and dmesg; a restart of the machine helps where a device hangs", "%s ended with: %v", what, err)
		return nil
	}
	return p
}
