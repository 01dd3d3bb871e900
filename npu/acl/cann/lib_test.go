//go:build cgo && linux

package cann_test

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu/acl/abi"
	"github.com/gotrain/gotrain/npu/acl/cann"
	"github.com/gotrain/gotrain/npu/acl/fakecann"
)

// install makes a fake toolkit and has Open look for it there only.
func install(t *testing.T, o fakecann.Options) string {
	t.Helper()
	dir := fakecann.Install(t, o)
	t.Setenv(cann.EnvHome, dir)
	return dir
}

func TestOpen(t *testing.T) {
	for version, major := range map[string]int{"8.1": 8, "9.0": 9} {
		dir := install(t, fakecann.Options{Version: version})
		l, err := cann.Open()
		if err != nil {
			t.Fatal(err)
		}
		again, err := cann.Open()
		if again != l || err != nil {
			t.Errorf("the second Open gave another library, %v", err)
		}
		if l.Dir() != filepath.Join(dir, "lib64") || l.Version().Major != major || !strings.Contains(l.Version().String(), "runtime") {
			t.Errorf("%s: %s, %v", version, l.Dir(), l.Version())
		}
		for _, o := range abi.Ops() {
			if new := o.Name == "DropoutGenMaskV2Tensor"; l.HasOp(o.Name) != (major == 9 || !new) {
				t.Errorf("%s: operator %s: found %v", version, o.Name, l.HasOp(o.Name))
			}
		}
		if l.HasOp("Nothing") || !l.Has("aclrtMalloc") || l.Has("HcclAllReduce") {
			t.Error("functions that are not there were found, or the other way round")
		}
		if err := l.LoadHCCL(); err != nil || !l.Has("HcclAllReduce") || l.Has("HcclGroupStart") != (major == 9) {
			t.Errorf("%s: HCCL: %v", version, err)
		}
		split := 0
		for _, p := range l.Paths() {
			if strings.Contains(p, "libopapi_") {
				split++
			}
		}
		if (split > 1) != (major == 9) {
			t.Errorf("%s: loaded %v", version, l.Paths())
		}
	}
}

func TestWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		what  string
		o     fakecann.Options
		spoil func(dir string) error
		want  []string
	}{
		{"all", fakecann.Options{}, func(dir string) error { return os.RemoveAll(filepath.Join(dir, "lib64")) },
			[]string{"libascendcl.so of CANN cannot be loaded", "lib64/libascendcl.so (GOTRAIN_CANN_HOME): no such file", "hint: install CANN 8.1 or later"}},
		{"a broken file", fakecann.Options{}, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "lib64", "libascendcl.so"), []byte("text"), 0o644)
		}, []string{"libascendcl.so", "CANN 8.1.RC1", "is installed in", "hint: source its set_env.sh"}},
		{"the base", fakecann.Options{}, func(dir string) error { return os.Remove(filepath.Join(dir, "lib64", "libnnopbase.so")) },
			[]string{"libnnopbase.so", "although libascendcl.so was", "8.1.RC1", "hint: install the whole toolkit"}},
		{"operators", fakecann.Options{}, func(dir string) error { return os.Remove(filepath.Join(dir, "lib64", "libopapi.so")) },
			[]string{"a library of operators cannot be loaded", "libopapi_*.so, libopapi.so and libaclnn_*.so", "8.1.RC1"}},
		{"functions", fakecann.Options{Without: []string{"aclrtMalloc", "aclCreateTensor"}}, nil,
			[]string{"lacks functions that gotrain needs: aclrtMalloc, aclCreateTensor\nhint: "}},
	} {
		dir := install(t, c.o)
		if c.spoil != nil {
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
		}
		_, err := cann.Open()
		if err == nil {
			t.Errorf("%s: opened", c.what)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error does not say %q: %v", c.what, want, err)
			}
		}
	}
}

// Optional functions and operators may be missing; using one is an error that names it.
func TestOptional(t *testing.T) {
	install(t, fakecann.Options{Without: []string{"aclrtStreamAbort", "aclrtGetVersion", "Sin"}})
	l, err := cann.Open()
	if err != nil {
		t.Fatal(err)
	}
	if l.HasOp("Sin") || l.Has("aclrtStreamAbort") || l.InterfaceVersion() != "" {
		t.Error("what is missing was found")
	}
	if err := l.AbortStream(1); err == nil || !strings.Contains(err.Error(), "aclrtStreamAbort: the installed libraries do not have this function") {
		t.Errorf("got %v", err)
	}
	s := l.NewSequence(1)
	defer s.Close()
	var e *cann.Error
	if err := s.Add("Sin", make([]cann.Arg, 2)); !errors.As(err, &e) || e.Op != "Sin" {
		t.Errorf("got %v", err)
	}
	for op, n := range map[string]int{"Nothing": 1, "Add": 3} {
		if err := s.Add(op, make([]cann.Arg, n)); err == nil || errors.As(err, &e) {
			t.Errorf("%s with %d arguments: %v", op, n, err)
		}
	}
	if err := s.Add("Relu", []cann.Arg{{Object: l.Text("x")}, {}}); err == nil || !strings.Contains(err.Error(), "argument self is an object of another kind") {
		t.Errorf("a text as a tensor: %v", err)
	}
}

// A library of operators that cannot be loaded is told, although the others are there.
func TestOneLibraryIsBroken(t *testing.T) {
	dir := install(t, fakecann.Options{Version: "9.0"})
	broken, _ := filepath.Glob(filepath.Join(dir, "lib64", "libopapi_*.so"))
	if len(broken) < 2 {
		t.Fatal(broken)
	}
	if err := errors.Join(os.Remove(broken[0]), os.WriteFile(broken[0], []byte("no library"), 0o644)); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(old)
	if _, err := cann.Open(); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, filepath.Base(broken[0])) {
		t.Errorf("logged %q", got)
	}
}

// A toolkit for another processor is told so, not that its files do not exist.
func TestOtherProcessor(t *testing.T) {
	dir := install(t, fakecann.Options{})
	file, err := filepath.EvalSymlinks(filepath.Join(dir, "lib64", "libascendcl.so"))
	if err != nil {
		t.Fatal(err)
	}
	head, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head[18], head[19] = 243, 0 // RISC-V
	if err := errors.Join(os.Remove(file), os.WriteFile(file, head, 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := cann.Open(); err == nil || !strings.Contains(err.Error(), "the file is for another processor (machine 243), this program for ") {
		t.Errorf("got %v", err)
	}
}

func TestUntrusted(t *testing.T) {
	dir := install(t, fakecann.Options{})
	if err := os.Chmod(filepath.Join(dir, "lib64"), 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := cann.Open()
	if err == nil || !strings.Contains(err.Error(), "can be written by every user") {
		t.Errorf("got %v", err)
	}
}

// Open finds a toolkit as set_env.sh leaves the environment: by the dynamic linker, or by ASCEND_HOME_PATH.
func TestEnvironment(t *testing.T) {
	if os.Getenv("CANN_TEST_CHILD") != "" {
		l, err := cann.Open()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("loaded from %s", l.Dir())
		return
	}
	dir := fakecann.Install(t, fakecann.Options{})
	foreign := fakecann.Install(t, fakecann.Options{Version: "9.0"}) // what the user puts on LD_LIBRARY_PATH is loaded whoever owns it, all of it
	if err := os.Chmod(filepath.Join(foreign, "lib64"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, env := range [][]string{fakecann.Env(dir), {"ASCEND_TOOLKIT_HOME=" + dir}, {"LD_LIBRARY_PATH=" + filepath.Join(foreign, "lib64")}} {
		dir := dir
		if strings.Contains(env[0], foreign) {
			dir = foreign
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEnvironment$", "-test.v")
		cmd.Env = append(append(os.Environ(), "CANN_TEST_CHILD=1", cann.EnvHome+"="), env...)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "loaded from "+filepath.Join(dir, "lib64")) {
			t.Errorf("%v: %v\n%s", env, err, out)
		}
	}
}
