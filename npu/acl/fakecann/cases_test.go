package fakecann

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu/acl/abi"
)

// api declares all exports, for the cases in C.
func api() string {
	b := strings.Builder{}
	b.WriteString("#ifndef API_H\n#define API_H\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\nstruct fk_s4 { int32_t v; };\n")
	for _, f := range functions() {
		fmt.Fprintf(&b, "%s %s(%s);\n", ctype(f.Result), f.Name, parameters(f))
	}
	for _, o := range abi.Ops() {
		params := make([]string, len(o.Args))
		for i, a := range o.Args {
			params[i] = abi.Codes[a.Code]
			if strings.HasSuffix(params[i], "*") {
				params[i] = "const void *"
			}
		}
		fmt.Fprintf(&b, "int32_t aclnn%[1]sGetWorkspaceSize(%[2]s, uint64_t *, void **);\n"+
			"int32_t aclnn%[1]s(void *, uint64_t, void *, void *);\n", o.Name,
			strings.Join(params, ", "))
	}
	b.WriteString("size_t fakeStats(char *, size_t);\nbool fakeSet(const char *, const char *);\nvoid fakeZero(void);\n#endif\n")
	return b.String()
}

// program builds the cases against the libraries in a folder; with sanitizers, all of the fake is compiled into it.
func program(t *testing.T, dir string, sanitize ...string) string {
	t.Helper()
	c, err := newCompiler(sanitize...)
	if err != nil {
		t.Skip(err)
	}
	tmp := t.TempDir()
	if err := os.WriteFile(filepath.Join(tmp, "api.h"), []byte(api()), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/cases/*.c")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(tmp, "cases")
	args := slices.Concat(c.flags, []string{"-I" + tmp, "-Itestdata/cases", "-o", bin}, files)
	if len(sanitize) == 0 {
		lib := filepath.Join(dir, "lib64")
		args = append(args, "-L"+lib, "-Wl,-rpath,"+lib)
		for _, l := range libraries("9.0", nil) {
			args = append(args, "-l"+l.name)
		}
		args = append(args, "-lfakecann")
	} else {
		objects, err := c.core()
		if err != nil {
			t.Fatal(err)
		}
		all := libraries("8.1", []string{})
		all[len(all)-1].functions = abi.HCCL() // GroupStart, too
		for _, l := range all {
			if l.name == "opapi" {
				l.ops = abi.Ops()
			}
			o, err := c.object("static-"+l.name, exports(l, "9.0"))
			if err != nil {
				t.Fatal(err)
			}
			objects = append(objects, o)
		}
		args = slices.Concat(args, objects)
	}
	if err := c.run(append(args, "-lpthread", "-lm", "-ldl")...); err != nil {
		t.Fatal(err)
	}
	return bin
}

// run runs a case.
func run(t *testing.T, bin, name string, env ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, name)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second // a process that the case started may hold the output
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func names(t *testing.T, bin string) []string {
	t.Helper()
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// expect runs a case and judges it. Cases whose names begin with abort end their process on purpose.
func expect(t *testing.T, bin, name string, env ...string) {
	t.Helper()
	out, err := run(t, bin, name, env...)
	if strings.HasPrefix(name, "abort_") {
		if err == nil || !strings.Contains(out, "violation: aclSetAclOpExecutorRepeatable") {
			t.Errorf("it was not aborted: %v\n%s", err, out)
		}
		return
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Each case shows that a rule bites, or that what is allowed works.
func TestCases(t *testing.T) {
	bin := program(t, Install(t, Options{Version: "9.0"}))
	for _, n := range names(t, bin) {
		t.Run(n, func(t *testing.T) { expect(t, bin, n) })
	}
}

// The two versions differ in what they accept, and the statistics reach their file.
func TestVersionAndStatistics(t *testing.T) {
	bin := program(t, Install(t, Options{Version: "9.0"}))
	old := Install(t, Options{})
	file := filepath.Join(t.TempDir(), "stats-%p.json")
	if out, err := run(t, bin, "executor_leaks", "FAKE_CANN_STATS="+file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l, err := filepath.Glob(strings.Replace(file, "%p", "*", 1))
	if err != nil || len(l) != 1 {
		t.Fatal(l, err)
	}
	s, err := ReadStats(l[0])
	if err != nil || s.Violations != 0 || s.LeakedExecutors != 1 || s.Calls["aclnnAddGetWorkspaceSize"] != 1 || s.DeviceThreads[0] != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if want := "1 executors"; !strings.Contains(s.Leaks(), want) {
		t.Errorf("leaks: %q, want %q in it", s.Leaks(), want)
	}
	for name, v := range map[string]string{"FAKE_CANN_INJECT": "aclrtMallocs:1:1", "FAKE_CANN_SOC": "A9", "FAKE_CANN_DEVICES": "many"} {
		if out, err := run(t, bin, "add", name+"="+v); err == nil {
			t.Errorf("%s=%s had no effect: %s", name, v, out)
		}
	}
	if m := exported(t, filepath.Join(old, "lib64", "libhccl.so")); m["HcclGroupStart"] {
		t.Error("8.1 has HcclGroupStart")
	}
}

// The same cases with the fake compiled into them, under a sanitizer. It takes minutes.
func TestSanitized(t *testing.T) {
	if os.Getenv("FAKE_CANN_SANITIZE") == "" {
		t.Skip("set FAKE_CANN_SANITIZE=1 to compile the fake twice more and to run all cases with it")
	}
	for name, flags := range map[string][]string{
		"address": {"-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"},
		"thread":  {"-fsanitize=thread"},
	} {
		t.Run(name, func(t *testing.T) {
			if why := cannot(t, flags); why != "" {
				t.Skip(why)
			}
			bin := program(t, "", flags...)
			for _, n := range names(t, bin) {
				if strings.Contains(n, "hccl_processes") || strings.Contains(n, "two_ranks_on") || n == "host_reads_device_memory" {
					continue // they fork with threads, which the sanitizers do not follow
				}
				if name == "thread" && n == "workspace_shared_by_streams" {
					continue // the race is what the case is about
				}
				t.Run(n, func(t *testing.T) { expect(t, bin, n, "ASAN_OPTIONS=detect_leaks=0", "TSAN_OPTIONS=halt_on_error=1") })
			}
		})
	}
}

// cannot says why the compiler cannot make and run a program with flags.
func cannot(t *testing.T, flags []string) string {
	t.Helper()
	cc, err := find()
	if err != nil {
		return err.Error()
	}
	dir := t.TempDir()
	file, bin := filepath.Join(dir, "a.c"), filepath.Join(dir, "a")
	if err := os.WriteFile(file, []byte("int main(void) { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, slices.Concat(flags, []string{file, "-o", bin})...).CombinedOutput(); err != nil {
		return fmt.Sprintf("no sanitizer: %v %s", err, out)
	}
	if out, err := exec.Command(bin).CombinedOutput(); err != nil {
		return fmt.Sprintf("the sanitizer does not run here: %v %s", err, out)
	}
	return ""
}
