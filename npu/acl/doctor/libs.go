package doctor

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/npu/acl/abi"
	"github.com/gotrain/gotrain/npu/acl/cann"
)

func names(l []abi.Function) []string {
	var n []string
	for _, f := range l {
		n = append(n, f.Name)
	}
	return n
}

// Wanted lists the libraries of a toolkit with the symbols that the tables of package abi want of each.
func (x *exam) wanted() []Library {
	var l []Library
	find := func(name string, symbols []string) {
		for _, dir := range []string{x.libs, x.root + "/lib64"} {
			if f := dir + "/" + name; x.exists(f) {
				l = append(l, Library{f, symbols})
				return
			}
		}
	}
	find("libascendcl.so", names(abi.Runtime()))
	if len(l) == 0 {
		find("libacl_rt.so", names(abi.Runtime()))
	}
	find("libnnopbase.so", names(abi.Base()))
	var ops []string
	for _, o := range abi.Ops() {
		ops = append(ops, "aclnn"+o.Name, "aclnn"+o.Name+"GetWorkspaceSize")
	}
	for _, f := range cann.OpLibraries(x.fs, rel(x.libs)) {
		l = append(l, Library{"/" + f, ops})
	}
	find("libhccl.so", names(abi.HCCL()))
	find("libhcomm.so", names(abi.HCCL()))
	return l
}

// libraries loads each library by its path, and looks for the functions of the tables.
func (x *exam) libraries() {
	if x.root == "" {
		return
	}
	want := x.wanted()
	have := map[string]bool{}
	for _, w := range want {
		have[path.Base(w.File)] = true
	}
	for _, n := range []string{"libnnopbase.so", "libhccl.so"} {
		if !have[n] {
			x.add(Error, x.libs, "install the whole toolkit", "%s is missing", n)
		}
	}
	if p := x.probe(Request{Stage: StageLibraries, Libraries: want}, "loading CANN's libraries"); p != nil {
		x.loaded(p)
	}
	x.opened()
}

// loaded makes findings of what became of the libraries.
func (x *exam) loaded(p *Probe) {
	failed := 0
	missing := map[string]map[string]bool{} // by group of libraries: those that no library of the group has
	for _, l := range p.Libraries {
		if l.Error != "" {
			failed++
			x.add(Error, l.File, libraryRemedy(l.Error, x.setEnv()), "%s cannot be loaded: %s", path.Base(l.File), l.Error)
			continue
		}
		g := group(l.File)
		now := map[string]bool{}
		for _, s := range l.Missing {
			now[s] = missing[g] == nil || missing[g][s]
		}
		maps.DeleteFunc(now, func(_ string, still bool) bool { return !still })
		missing[g] = now
	}
	if failed == 0 {
		x.ok(x.libs, "%d libraries can be loaded", len(p.Libraries))
	}
	for _, g := range slices.Sorted(maps.Keys(missing)) {
		x.symbols(g, slices.Sorted(maps.Keys(missing[g])))
	}
}

// group is what a library's functions belong to.
func group(file string) string {
	switch base := path.Base(file); {
	case strings.HasPrefix(base, "libopapi"), strings.HasPrefix(base, "libaclnn"):
		return "operators"
	case base == "libhccl.so", base == "libhcomm.so":
		return "HCCL"
	case base == "libnnopbase.so":
		return "operator base"
	}
	return "runtime"
}

// symbols makes findings of the functions that a group of libraries lacks.
func (x *exam) symbols(group string, missing []string) {
	all := map[string]int{"operators": len(abi.Ops()), "HCCL": len(abi.HCCL()), "operator base": len(abi.Base()), "runtime": len(abi.Runtime())}[group]
	var need, can []string
	ops := map[string]bool{}
	for _, s := range missing {
		switch name, isOp := strings.CutPrefix(s, "aclnn"); {
		case group == "operators" && isOp:
			if o := strings.TrimSuffix(name, "GetWorkspaceSize"); !ops[o] {
				ops[o] = true
				can = append(can, o)
			}
		case group == "HCCL" && strings.HasPrefix(s, "HcclGroup"), cann.Optional(s):
			can = append(can, s)
		default:
			need = append(need, s)
		}
	}
	if len(need) > 0 {
		x.add(Error, x.libs, "install CANN 8.1 or later", "%s: functions that gotrain needs are missing: %s", group, strings.Join(need, ", "))
	}
	switch what := fmt.Sprintf("%s: lacks %d of %d: %s", group, len(can), all, strings.Join(can, ", ")); {
	case len(can) == 0:
	case group == "operators":
		x.add(Note, x.libs, "nothing, if training works: gotrain composes what is missing where it can, and names the kind where it cannot (gotrain doctor --device)",
			"%s", what)
	default:
		x.ok(x.libs, "%s; gotrain does without", what)
	}
	if len(missing) == 0 {
		x.ok(x.libs, "%s: all %d are there", group, all)
	}
}

// libraryRemedy reads dlerror's text.
func libraryRemedy(text, script string) string {
	switch {
	case strings.Contains(text, "static TLS"):
		return "start gotrain with LD_PRELOAD=libgomp.so.1, or GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384"
	case strings.Contains(text, "libascend_hal") || strings.Contains(text, "libdrv"):
		return "add the driver's folders to LD_LIBRARY_PATH: /usr/local/Ascend/driver/lib64, …/lib64/common and …/lib64/driver; mount them in a container"
	case strings.Contains(text, "is not loaded"):
		return "keep the library in a folder that only root or you can write to"
	case strings.Contains(text, "cannot open shared object file"):
		return "source set_env.sh in the shell that starts gotrain (. " + script + "), which puts the libraries that this one needs on the path"
	}
	return "reinstall the toolkit for this architecture"
}

// opened opens each NPU as training does.
func (x *exam) opened() {
	p := x.probe(Request{Stage: StageDevices}, "opening the NPUs")
	if p == nil {
		return
	}
	if p.Error != "" {
		text, hint, _ := strings.Cut(p.Error, "\nhint: ")
		x.add(Error, "aclrtGetDeviceCount", hint, "NPUs cannot be opened: %s", text)
		return
	}
	x.r.NPUs = max(x.r.NPUs, len(p.Devices))
	var order []string
	same := map[string][]int{} // by what they are
	for _, d := range p.Devices {
		if d.Error != "" {
			text, hint, _ := strings.Cut(d.Error, "\nhint: ")
			if hint == "" {
				hint = "check driver, firmware and the processes on the device (npu-smi info)"
			}
			x.add(Error, fmt.Sprint("npu:", d.Index), hint, "npu:%d cannot be opened: %s", d.Index, text)
			continue
		}
		if d.SoC != "" {
			x.r.SoC = d.SoC
		}
		what := d.Detail + "; " + strings.Join(d.Types, ", ")
		if same[what] == nil {
			order = append(order, what)
		}
		same[what] = append(same[what], d.Index)
	}
	for _, what := range order {
		x.ok("", "%s can be opened: %s", ranges("npu:", same[what]), what)
	}
}
