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

// Each case shows that a rule bites, or that what is allowed works.
func TestCases(t *testing.T) {
	bin := program(t, Install(t, Options{Version: "9.0"}))
	for _, n := range names(t, bin) {
		t.Run(n, func(t *testing.T) {
			if out, err := run(t, bin, n, "FAKE_CANN_TIME_SCALE=0.001"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}
