//go:build cgo && linux

package dnnl

/*
#cgo CFLAGS: -O2 -Wall
#cgo LDFLAGS: -ldl
#include "lib.h"
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
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

// EnvPath names the environment variable with the path of the library to use.
const EnvPath = "GOTRAIN_ONEDNN"

// Names lists the libraries that Open("") tries, in order. scripts/setup.sh installs the one with a path, where the system does not package version 3.
var Names = names()

func names() []string {
	n := []string{"libdnnl.so.3", "libdnnl.so.2"}
	if dir, err := os.UserCacheDir(); err == nil {
		n = slices.Insert(n, 1, filepath.Join(dir, "gotrain", "lib", "libdnnl.so.3"))
	}
	return n
}

// ErrUnsupported is returned by a constructor if the library does not implement a spec.
var ErrUnsupported = errors.New("dnnl: unsupported")

// Lib is a loaded library with its engine. It lives until the process ends, because code with OpenMP threads cannot be unmapped. All methods may be called
// concurrently.
type Lib struct {
	c    *C.gt_lib
	path string
}

var (
	openMu sync.Mutex
	opened = map[string]*Lib{}
)

// Open loads the library at path; "" means $GOTRAIN_ONEDNN, or otherwise the first of Names that loads. The same path returns the same Lib.
func Open(path string) (*Lib, error) {
	if path == "" {
		path = os.Getenv(EnvPath)
	}
	openMu.Lock()
	defer openMu.Unlock()
	if path != "" {
		l, err := load(path)
		if err != nil {
			return nil, fmt.Errorf(
				"dnnl: cannot load oneDNN from %s: %w\nhint: set %s to a libdnnl.so.2 or libdnnl.so.3, or unset it to use the system's",
				path,
				err,
				EnvPath,
			)
		}
		return l, nil
	}
	var all []string
	for _, name := range Names {
		l, err := load(name)
		if err == nil {
			return l, nil
		}
		if errors.Is(err, solib.ErrUntrusted) { // otherwise a slower one would be used silently
			slog.Warn("a library was skipped", "reason", err)
		}
		all = append(all, err.Error())
	}
	return nil, errors.New(absent(strings.Join(all, "; ")))
}

// absent explains why no library could be loaded. One that is there may lack room in the address space.
func absent(reasons string) string {
	if strings.Contains(reasons, "Cannot allocate memory") || strings.Contains(reasons, "failed to map segment") {
		return fmt.Sprintf("dnnl: there is no memory to load oneDNN (%s)\nhint: raise the limit of this process (ulimit -v) or of its container", reasons)
	}
	return fmt.Sprintf("dnnl: oneDNN is not installed (%s)\n"+
		"hint: apt-get install libdnnl2 (Debian, Ubuntu), or pip install onednn-cpu-gomp and set %s to its libdnnl.so.3", reasons, EnvPath)
}

func load(path string) (*Lib, error) {
	if l := opened[path]; l != nil {
		return l, nil
	}
	file, err := solib.Check(path)
	if err != nil {
		return nil, err
	}
	p := C.CString(file)
	defer C.free(unsafe.Pointer(p))
	buf := (*C.char)(C.calloc(1, 512))
	defer C.free(unsafe.Pointer(buf))
	c := C.gt_open(p, buf, 512)
	if c == nil {
		return nil, errors.New(C.GoString(buf))
	}
	l := &Lib{c: c, path: path}
	opened[path] = l
	return l, nil
}

// Environment sets variables that libgomp and the library read when they are loaded, unless the user has set them. It only has an effect before the first
// Open of the process. share is the number of ranks on the machine; isa, if not empty, is the best instruction set that the library may use, as a value of
// ONEDNN_MAX_CPU_ISA.
func Environment(threads, share int, isa string) error {
	set := map[string]string{"OMP_NUM_THREADS": fmt.Sprint(threads), "OMP_DYNAMIC": "false"}
	if isa != "" {
		set["ONEDNN_MAX_CPU_ISA"] = isa
	}
	if threads > 1 {
		// Threads that spin while they wait take the cores from goroutines and other ranks: 5-10 times slower with two
		// ranks of two threads on two cores. For a single rank a short spin saves 10 % of the time of small kernels.
		if share > 1 {
			set["OMP_WAIT_POLICY"] = "passive"
		} else if os.Getenv("OMP_WAIT_POLICY") == "" {
			set["GOMP_SPINCOUNT"] = "20000"
		}
	}
	for k, v := range set {
		if os.Getenv(k) != "" {
			continue
		}
		if err := os.Setenv(k, v); err != nil {
			return fmt.Errorf("dnnl: cannot set %s: %w", k, err)
		}
		// Go's Setenv reaches C's environment in a cgo program; the explicit call avoids relying on it.
		ck, cv := C.CString(k), C.CString(v)
		C.gt_setenv(ck, cv)
		C.free(unsafe.Pointer(ck))
		C.free(unsafe.Pointer(cv))
	}
	return nil
}

// Spins reports whether threads that wait may spin for a moment, by what Environment or the user has set: not where several ranks share the processors.
func Spins() bool {
	return !strings.EqualFold(os.Getenv("OMP_WAIT_POLICY"), "passive") && os.Getenv("GOMP_SPINCOUNT") != "0"
}

// Path is the path of the loaded library.
func (l *Lib) Path() string { return l.path }

// Major is the version of the library's C API: 2 or 3.
func (l *Lib) Major() int { return int(l.c.major) }

// Version is the library's version, such as "2.6.3".
func (l *Lib) Version() string { return fmt.Sprintf("%d.%d.%d", l.c.major, l.c.minor, l.c.patch) }

// ISA is the best instruction set that the library uses on this machine, such as "avx512_core_amx" or "sve_512".
func (l *Lib) ISA() string {
	n := C.gt_isa(l.c)
	if runtime.GOARCH == "amd64" { // the names in a library for arm64 are those of x86
		if s := C.gt_isa_name(l.c, n); s != nil {
			if name := strings.TrimPrefix(C.GoString(s), "cpu_isa_"); name != "" && !strings.HasPrefix(name, "unknown") {
				return name
			}
		}
	}
	return isaName(runtime.GOARCH, int(n))
}

// isaName names an instruction set by its bits, the best first.
func isaName(arch string, isa int) string {
	type set struct {
		bits int
		name string
	}
	for _, k := range map[string][]set{
		"amd64": {
			{0xfef, "avx512_core_amx_fp16"}, {0x3e7, "avx512_core_amx"}, {0x1ef, "avx512_core_fp16"}, {0xe7, "avx512_core_bf16"},
			{0x67, "avx512_core_vnni"}, {0x27, "avx512_core"}, {0x407, "avx2_vnni"}, {0x7, "avx2"}, {0x3, "avx"}, {0x1, "sse41"},
		},
		"arm64": {{0x1f, "sve_512"}, {0xf, "sve_384"}, {0x7, "sve_256"}, {0x3, "sve_128"}, {0x1, "asimd"}},
	}[arch] {
		if isa&k.bits == k.bits {
			return k.name
		}
	}
	return "default"
}

// SetThreads sets the number of OpenMP threads for primitives that run on the calling OS thread.
func (l *Lib) SetThreads(n int) { C.gt_threads(l.c, C.int(n)) }

// Stream is the library's execution queue; on the host it executes in the calling thread.
type Stream struct {
	lib *Lib
	c   unsafe.Pointer
}

// NewStream creates a stream; each device stream has one.
func (l *Lib) NewStream() (*Stream, error) {
	s := &Stream{lib: l}
	if st := C.gt_stream(l.c, &s.c); st != 0 {
		return nil, statusErr("stream", st)
	}
	return s, nil
}

// Handle is the library's handle of the stream.
func (s *Stream) Handle() unsafe.Pointer { return s.c }

// Close frees the stream; idempotent.
func (s *Stream) Close() {
	if s.c != nil {
		C.gt_stream_free(s.lib.c, s.c)
		s.c = nil
	}
}

// statusErr turns dnnl_status_t into an error.
func statusErr(what string, st C.int) error {
	names := map[C.int]string{
		1: "out of memory",
		2: "invalid arguments",
		3: "unimplemented",
		4: "last implementation reached",
		5: "runtime error",
		6: "not required",
	}
	switch {
	case st == -2:
		return fmt.Errorf("%w: this version of oneDNN does not have a %s primitive", ErrUnsupported, what)
	case st == 3 || st == 4:
		return fmt.Errorf("%w: %s: %s", ErrUnsupported, what, names[st])
	case names[st] != "":
		return fmt.Errorf("dnnl: %s: %s", what, names[st])
	}
	return fmt.Errorf("dnnl: %s: status %d", what, st)
}
