//go:build cgo && linux

package cann

/*
#cgo CFLAGS: -O2 -Wall -g0
#cgo LDFLAGS: -ldl
#include "load.h"
#include "run.h"
#include <stdlib.h>
*/
import "C"

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/gotrain/gotrain/npu/solib"
)

// Lib is a loaded CANN. It lives until the process ends, because its threads keep running.
type Lib struct {
	c       *C.gt_cann
	dir     string // of the libraries; "" if the dynamic linker does not tell
	only    bool   // the user named the folder: no library may come from elsewhere
	version Version
	ops     map[string]int // index of each operator
	paths   []string       // the libraries loaded

	initOnce sync.Once
	initErr  error

	hcclMu     sync.Mutex
	hcclTried  bool
	hcclErr    error
	hcclLoaded bool
}

var (
	openMu sync.Mutex
	opened = map[string]*Lib{} // by what decides the search
)

// Open loads CANN; the same environment gives the same Lib. It calls nothing of CANN.
func Open() (*Lib, error) {
	openMu.Lock()
	defer openMu.Unlock()
	key := strings.Join([]string{os.Getenv(EnvHome), os.Getenv("ASCEND_HOME_PATH"), os.Getenv("ASCEND_TOOLKIT_HOME")}, "\n")
	if l := opened[key]; l != nil {
		return l, nil
	}
	l, err := load(roots(os.Getenv))
	if err == nil {
		opened[key] = l
	}
	return l, err
}

// load tries the roots in order. Once a runtime library is found, its folder must have the rest.
func load(from []root) (*Lib, error) {
	var tried []string
	for _, r := range from {
		var handle unsafe.Pointer
		for _, file := range candidates(r, "libascendcl.so", "libacl_rt.so") {
			h, err := dlopen(file)
			if err == nil {
				handle = h
				break
			}
			tried = append(tried, fmt.Sprintf("%s (%s): %v", file, r.why, err))
		}
		if handle == nil {
			continue
		}
		l := &Lib{c: (*C.gt_cann)(C.calloc(1, C.sizeof_gt_cann)), ops: map[string]int{}}
		if err := l.fill(handle, r); err != nil {
			C.free(unsafe.Pointer(l.c))
			return nil, err
		}
		return l, nil
	}
	return nil, fmt.Errorf("cann: libascendcl.so of CANN cannot be loaded; tried:\n  %s\n%s", strings.Join(tried, "\n  "), missingHint(from))
}

func missingHint(from []root) string {
	for _, r := range from {
		if r.dir == "" {
			continue
		}
		for _, d := range libDirs(r.dir) {
			if exists(filepath.Join(d, "libascendcl.so")) {
				return fmt.Sprintf("CANN %s is installed in %s\nhint: source its set_env.sh in the shell that starts gotrain (`. %s/set_env.sh`), "+
					"and check that LD_LIBRARY_PATH has the driver's folders (/usr/local/Ascend/driver/lib64/common and …/driver)",
					ReadVersion(r.dir), r.dir, r.dir)
			}
		}
	}
	return "hint: install CANN 8.1 or later and source its set_env.sh, or set " + EnvHome + " to its folder"
}

// candidates are the files to try for a library in a root.
func candidates(r root, names ...string) []string {
	var l []string
	for _, n := range names {
		if r.dir == "" {
			l = append(l, n)
			continue
		}
		for _, d := range libDirs(r.dir) {
			if f := filepath.Join(d, n); exists(f) {
				l = append(l, f)
			}
		}
	}
	if len(l) == 0 { // so that the message names a path
		l = append(l, filepath.Join(r.dir, "lib64", names[0]))
	}
	return l
}

func dlopen(file string) (unsafe.Pointer, error) {
	path, err := solib.Check(file)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = errors.New("no such file")
		}
		return nil, err
	}
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	const size = 1024
	buf := (*C.char)(C.calloc(1, size))
	defer C.free(unsafe.Pointer(buf))
	h := C.gt_dlopen(p, buf, size)
	if h == nil {
		return nil, errors.New(clean(C.GoString(buf)) + foreign(path))
	}
	return h, nil
}

// foreign says that a library is for another processor. The dynamic linker passes over such a file and then claims that it does not exist.
func foreign(path string) string {
	const machine = 18 // offset of e_machine in the header of an ELF file
	names := map[uint16]string{62: "x86-64", 183: "aarch64"}
	own := map[string]uint16{"amd64": 62, "arm64": 183}[runtime.GOARCH]
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, machine+2)
	if _, err := io.ReadFull(f, head); err != nil || string(head[:4]) != "\x7fELF" {
		return ""
	}
	is := binary.LittleEndian.Uint16(head[machine:])
	if is == own {
		return ""
	}
	return fmt.Sprintf(": the file is for %s, this program for %s", cmp.Or(names[is], fmt.Sprintf("another processor (machine %d)", is)), names[own])
}

func dlsym(h unsafe.Pointer, name string) unsafe.Pointer {
	p := C.CString(name)
	defer C.free(unsafe.Pointer(p))
	return C.gt_dlsym(h, p)
}

// where is the file of the library that has an address.
func where(p unsafe.Pointer) string {
	const size = 4096
	buf := (*C.char)(C.calloc(1, size))
	defer C.free(unsafe.Pointer(buf))
	C.gt_where(p, buf, size)
	return C.GoString(buf)
}

// fill resolves the symbols of runtime, base and operators.
func (l *Lib) fill(runtime unsafe.Pointer, r root) error {
	l.only = r.why == EnvHome
	l.resolve(runtime, C.GT_RT_FIRST, C.GT_RT_COUNT)
	if at := where(l.c.fn[0]); strings.Contains(at, "/") {
		l.dir = filepath.Dir(at)
		l.paths = append(l.paths, at)
	}
	root := toolkit(l.dir)
	l.version = ReadVersion(root)
	base, err := l.beside("libnnopbase.so")
	if err != nil {
		return l.missing("libnnopbase.so, the base of operators,", r, err)
	}
	l.resolve(base, C.GT_BASE_FIRST, C.GT_BASE_COUNT)
	libs := opLibraries(l.dir)
	if len(libs) == 0 && !l.only {
		libs = []string{"libopapi.so"} // by the dynamic linker, which looks in more folders
	}
	var errs []error
	for _, file := range libs {
		h, err := l.beside(filepath.Base(file))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l.operators(h)
	}
	if len(l.ops) == 0 {
		errs = append(errs, fmt.Errorf("looked for libopapi_*.so, libopapi.so and libaclnn_*.so in %s", l.dir))
		return l.missing("a library of operators", r, errors.Join(errs...))
	}
	if err := errors.Join(errs...); err != nil { // the others may have all that is needed; if not, this says why
		slog.Warn("a library of operators of CANN cannot be loaded", "reason", err)
	}
	if lack := l.lacking(); len(lack) > 0 {
		return fmt.Errorf("cann: CANN %s in %s lacks functions that gotrain needs: %s\nhint: install CANN 8.1 or later", l.version, l.dir, strings.Join(lack, ", "))
	}
	return nil
}

func (l *Lib) missing(what string, r root, err error) error {
	dir := l.dir
	if dir == "" {
		dir = "the dynamic linker's folders"
	}
	return fmt.Errorf("cann: %s cannot be loaded although libascendcl.so was (CANN %s, in %s, found by %s): %w\nhint: install the whole toolkit and its "+
		"operator packages, source its set_env.sh, and check that only one CANN is on LD_LIBRARY_PATH", what, l.version, dir, r.why, err)
}

// beside loads another library from the folder of the first, or where the dynamic linker finds it.
func (l *Lib) beside(name string) (unsafe.Pointer, error) {
	var errs []error
	if file := filepath.Join(l.dir, name); l.dir != "" && exists(file) {
		h, err := dlopen(file)
		if err == nil {
			l.paths = append(l.paths, file)
			return h, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", file, err))
	}
	if l.only {
		if len(errs) == 0 {
			errs = append(errs, fmt.Errorf("%s is not in %s", name, l.dir))
		}
		return nil, errors.Join(errs...)
	}
	h, err := dlopen(name)
	if err == nil {
		l.paths = append(l.paths, name)
		return h, nil
	}
	return nil, errors.Join(append(errs, fmt.Errorf("%s: %w", name, err))...)
}

// resolve looks up functions that are not there yet.
func (l *Lib) resolve(h unsafe.Pointer, first, count int) {
	for i := first; i < first+count; i++ {
		if l.c.fn[i] == nil {
			l.c.fn[i] = C.gt_dlsym(h, C.gt_fn_names[i])
		}
	}
}

// operators looks up operators that no library before had.
func (l *Lib) operators(h unsafe.Pointer) {
	for i := range int(C.GT_OP_COUNT) {
		if l.c.size[i] != nil {
			continue
		}
		name := C.GoString(C.gt_op_names[i])
		size, run := dlsym(h, "aclnn"+name+"GetWorkspaceSize"), dlsym(h, "aclnn"+name)
		if size != nil && run != nil {
			l.c.size[i], l.c.run[i] = size, run
			l.ops[name] = i
		}
	}
}

// lacking lists the required functions that were not found.
func (l *Lib) lacking() []string {
	var lack []string
	for i := range int(C.GT_HCCL_FIRST) {
		if name := C.GoString(C.gt_fn_names[i]); l.c.fn[i] == nil && !Optional(name) {
			lack = append(lack, name)
		}
	}
	return lack
}

// toolkit is the root that a folder of libraries belongs to: the folder above lib64, or above x86_64-linux/lib64.
func toolkit(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	root := filepath.Dir(dir)
	if strings.HasSuffix(root, "-linux") {
		return filepath.Dir(root)
	}
	return root
}

// Version is what the files of the toolkit say.
func (l *Lib) Version() Version { return l.version }

// Dir is the folder of the libraries; "" if it is not known.
func (l *Lib) Dir() string { return l.dir }

// Paths lists the libraries that were loaded.
func (l *Lib) Paths() []string { return slices.Clone(l.paths) }

// HasOp reports whether the libraries have an operator, such as "Convolution".
func (l *Lib) HasOp(name string) bool { _, ok := l.ops[name]; return ok }

// Has reports whether the libraries have a function of the runtime or of the operator base, such as "aclrtStreamAbort".
func (l *Lib) Has(name string) bool {
	for i := range int(C.GT_FN_COUNT) {
		if C.GoString(C.gt_fn_names[i]) == name {
			return l.c.fn[i] != nil
		}
	}
	return false
}
