package fakecann

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed src/*.c src/*.h
var source embed.FS

// ErrNoCompiler says that the machine has no C compiler.
var ErrNoCompiler = errors.New("fakecann: no C compiler (gcc, clang or cc)" +
	"\nhint: install one, or set FAKE_CANN_CC, or FAKE_CANN_DIR to a folder built elsewhere")

// Options says which CANN to imitate.
type Options struct {
	Version string   // "8.1" (default) or "9.0"
	Without []string // functions or operators ("Add") that the libraries do not export
}

// Build makes a fake of CANN 8.1 in a folder.
func Build(dir string) error { return BuildWith(dir, Options{}) }

// BuildWith makes a fake of CANN in a folder. What it compiles is kept in the user's cache, by its content.
func BuildWith(dir string, o Options) error {
	if o.Version == "" {
		o.Version = "8.1"
	}
	if o.Version != "8.1" && o.Version != "9.0" {
		return fmt.Errorf("fakecann: version %q, want 8.1 or 9.0", o.Version)
	}
	if from := os.Getenv("FAKE_CANN_DIR"); from != "" {
		return os.CopyFS(dir, os.DirFS(filepath.Join(from, o.Version)))
	}
	c, err := newCompiler()
	if err != nil {
		return err
	}
	made, err := c.libraries(o)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(dir, "lib64"), os.DirFS(made)); err != nil {
		return err
	}
	return tree(dir, o.Version)
}

// libraries returns the folder in the cache with the linked libraries.
func (c *compiler) libraries(o Options) (string, error) {
	core, err := c.core()
	if err != nil {
		return "", err
	}
	libs, objects := libraries(o.Version, o.Without), map[string]string{}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q", c.id, core)
	for _, l := range libs {
		if objects[l.name], err = c.object("lib"+l.name, exports(l, o.Version)); err != nil {
			return "", err
		}
		fmt.Fprintf(h, " %q", objects[l.name])
	}
	dir := filepath.Join(c.cache, fmt.Sprintf("lib-%x", h.Sum(nil)[:12]))
	if fresh(dir) {
		return dir, nil
	}
	tmp, err := os.MkdirTemp(c.cache, "lib-*.tmp")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := c.link(tmp, "fakecann", core, "-lpthread", "-lm", "-ldl"); err != nil {
		return "", err
	}
	for _, l := range libs {
		args := []string{"-L" + tmp, "-lfakecann", "-Wl,-rpath,$ORIGIN"}
		for _, n := range l.needs {
			args = append(args, "-l"+n)
		}
		if err := c.link(tmp, l.name, []string{objects[l.name]}, args...); err != nil {
			return "", err
		}
	}
	if err := os.Rename(tmp, dir); err != nil && !exists(dir) { // another process may have been faster; both are equal
		return "", err
	}
	return dir, nil
}

// fresh says whether the cache has something, and marks it as used.
func fresh(file string) bool {
	now := time.Now()
	return os.Chtimes(file, now, now) == nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// compiler compiles into a cache.
type compiler struct {
	cc    string
	id    string // version and machine
	flags []string
	cache string
	heads string // hash of all headers
}

var flags = []string{"-std=gnu11", "-O2", "-g1", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-fwrapv", "-ffp-contract=off",
	"-Wall", "-Wextra", "-Werror",
	"-Wno-format-truncation"} // texts are cut off on purpose

func newCompiler(extra ...string) (*compiler, error) {
	cc, err := find()
	if err != nil {
		return nil, err
	}
	id, err := exec.Command(cc, "-v").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("fakecann: %s -v: %w", cc, err)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	c := &compiler{cc: cc, id: string(id), flags: slices.Concat(flags, extra), cache: filepath.Join(base, "gotrain", "fakecann")}
	h := sha256.New()
	heads, err := fs.Glob(source, "src/*.h")
	if err != nil {
		return nil, err
	}
	for _, n := range heads {
		text, err := source.ReadFile(n)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(h, "%s %d\n%s", n, len(text), text)
	}
	fmt.Fprint(h, header())
	c.heads = fmt.Sprintf("%x", h.Sum(nil))
	return c, os.MkdirAll(c.cache, 0o755)
}

// find returns the C compiler for this program's machine.
func find() (string, error) {
	names := []string{"gcc", "clang", "cc"}
	if runtime.GOARCH == "arm64" {
		names = append([]string{"aarch64-linux-gnu-gcc"}, names...)
	}
	if cc := os.Getenv("FAKE_CANN_CC"); cc != "" {
		names = []string{cc}
	}
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return p, nil
		}
	}
	return "", ErrNoCompiler
}

// core compiles the implementation.
func (c *compiler) core() ([]string, error) {
	names, err := fs.Glob(source, "src/*.c")
	if err != nil {
		return nil, err
	}
	texts := map[string]string{"table": table()}
	for _, n := range names {
		text, err := source.ReadFile(n)
		if err != nil {
			return nil, err
		}
		texts[strings.TrimSuffix(filepath.Base(n), ".c")] = string(text)
	}
	objects, errs := make([]string, 0, len(texts)), make([]error, 0)
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for n, text := range texts {
		wg.Go(func() {
			slots <- struct{}{}
			o, err := c.object(n, text)
			<-slots
			mu.Lock()
			defer mu.Unlock()
			objects = append(objects, o)
			errs = append(errs, err)
		})
	}
	wg.Wait()
	slices.Sort(objects)
	return objects, errors.Join(errs...)
}

// object compiles a file, unless the cache has it.
func (c *compiler) object(name, text string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %s %s\n%s", c.cc, c.id, c.flags, c.heads, name, text)
	file := filepath.Join(c.cache, fmt.Sprintf("%s-%x.o", name, h.Sum(nil)[:12]))
	if fresh(file) {
		return file, nil
	}
	dir, err := os.MkdirTemp("", "fakecann-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := c.sources(dir); err != nil {
		return "", err
	}
	in := filepath.Join(dir, name+".c")
	if err := os.WriteFile(in, []byte(text), 0o644); err != nil {
		return "", err
	}
	c.prune()
	tmp, err := os.CreateTemp(c.cache, name+"-*.tmp")
	if err != nil {
		return "", err
	}
	tmp.Close()
	if err := c.run(slices.Concat(c.flags, []string{"-I" + dir, "-c", in, "-o", tmp.Name()})...); err != nil {
		os.Remove(tmp.Name())
		return "", err
	}
	return file, os.Rename(tmp.Name(), file) // another process may do the same; both are equal
}

// prune removes what was made long ago: each change of a source leaves an object behind. What another test still wants is made again.
func (c *compiler) prune() {
	l, err := os.ReadDir(c.cache)
	if err != nil {
		return
	}
	for _, e := range l {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 30*24*time.Hour {
			os.RemoveAll(filepath.Join(c.cache, e.Name()))
		}
	}
}

// sources writes the headers into a folder.
func (c *compiler) sources(dir string) error {
	names, err := fs.Glob(source, "src/*.h")
	if err != nil {
		return err
	}
	for _, n := range names {
		text, err := source.ReadFile(n)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(n)), text, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "exports.h"), []byte(header()), 0o644)
}

func (c *compiler) link(dir, name string, objects []string, args ...string) error {
	file := "lib" + name + ".so"
	l := slices.Concat(c.flags, []string{"-shared", "-Wl,-z,defs", "-Wl,-soname," + file, "-o", filepath.Join(dir, file)}, objects, args)
	return c.run(l...)
}

func (c *compiler) run(args ...string) error {
	out, err := exec.Command(c.cc, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("fakecann: %s: %w\n%s", c.cc, err, out)
	}
	return nil
}
