package cann

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadVersion(t *testing.T) {
	for _, c := range []struct {
		what         string
		files        map[string]string
		name         string
		major, minor int
		text         string
	}{
		{"nothing", nil, "", 0, 0, "unknown version"},
		{"8.1", map[string]string{"x86_64-linux/ascend_toolkit_install.info": "package_name=Ascend-cann-toolkit\nversion=8.1.RC1\n",
			"runtime/version.info": "Version=7.7.0.1.238\nversion_dir=8.1.RC1\n", "hccl/version.info": "Version=7.6.0.3.220\nversion_dir=8.0.0\n"},
			"8.1.RC1", 8, 1, "8.1.RC1; hccl 8.0.0 (7.6.0.3.220), runtime 8.1.RC1 (7.7.0.1.238)"},
		{"9.0", map[string]string{"share/info/runtime/version.info": "Version=9.0.0.1\nversion_dir=9.0.0\n"}, "9.0.0", 9, 0, "9.0.0; runtime 9.0.0 (9.0.0.1)"},
		{"version.cfg only", map[string]string{"version.cfg": "# version: 1.0\nruntime_running_version=[7.7.0.1.238:8.1.RC1]\n"}, "8.1.RC1", 8, 1, "8.1.RC1"},
		{"garbage", map[string]string{"runtime/version.info": "\x00\xff=\n==\nVersion", "version.cfg": "[[["}, "", 0, 0, "unknown version"},
	} {
		root := t.TempDir()
		write(t, root, c.files)
		v := ReadVersion(root)
		if v.Name != c.name || v.Major != c.major || v.Minor != c.minor || v.String() != c.text {
			t.Errorf("%s: %+v, %q", c.what, v, v)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("Version=7.7\n# a=b\nx = \"y\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		for k, v := range ParseKeys(text) {
			if strings.ContainsAny(k+v, "\n") {
				t.Errorf("%q=%q has a line break", k, v)
			}
		}
	})
}

func TestRoots(t *testing.T) {
	env := map[string]string{"ASCEND_HOME_PATH": "/a", "ASCEND_TOOLKIT_HOME": "/a"}
	get := func(k string) string { return env[k] }
	var at []string
	for _, r := range roots(get) {
		at = append(at, r.dir+" "+r.why)
	}
	want := " LD_LIBRARY_PATH,/a ASCEND_HOME_PATH," + defaultRoots[0] + " default," + defaultRoots[1] + " default"
	if got := strings.Join(at, ","); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	env[EnvHome] = "/mine"
	if l := roots(get); len(l) != 1 || l[0].dir != "/mine" {
		t.Errorf("%v", l)
	}
}

func TestOpLibraries(t *testing.T) {
	dir := t.TempDir()
	base := func() string {
		var l []string
		for _, f := range opLibraries(dir) {
			l = append(l, filepath.Base(f))
		}
		return strings.Join(l, " ")
	}
	for _, c := range []struct{ add, want string }{
		{"libaclnn_math.so", "libaclnn_math.so"},
		{"libopapi.so", "libopapi.so"},
		{"libopapi_legacy.so", "libopapi_legacy.so"},
		{"libopapi_nn.so", "libopapi_nn.so libopapi_legacy.so"}, // legacy has the lowest priority, and the old one is not mixed in
	} {
		write(t, dir, map[string]string{c.add: ""})
		if got := base(); got != c.want {
			t.Errorf("with %s: %s, want %s", c.add, got, c.want)
		}
	}
}
