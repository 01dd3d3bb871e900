package headers

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu/acl/abi"
)

// wheel is a release of torch-npu, which ships headers of the runtime and of HCCL, and names operators as strings of its library.
type wheel struct {
	version, tags, sha256 string
	config                []Value        // the configuration of a communicator: its version does not tell its size
	absent                map[string]int // functions of a table that its headers lack
}

func config(version, size int64) []Value {
	return []Value{{"HCCL_COMM_CONFIG_VERSION", version}, {"sizeof(HcclCommConfig)", size}}
}

var wheels = []wheel{
	{"2.5.1", "manylinux_2_17_x86_64", "9bfa98b8daf30444a979c1271900923cd5c4d59c5d0a65eee10683218e28dac2",
		config(5, 300), map[string]int{"runtime": 7, "HCCL": 11}},
	{"2.7.1.post4", "manylinux_2_28_x86_64", "b395f58095185f7aabf6c65c96a858e0c9181625716a5482da22658564231e51", config(10, 2232),
		map[string]int{"runtime": 5}},
	{"2.14.0", "manylinux_2_28_x86_64", "7736f7d82cf9f16c7dfc4537f7e7c638153da760273a193455e70857f912189e", config(10, 2240), nil},
}

// fetch downloads a wheel and returns the folder torch_npu in it.
func fetch(t *testing.T, w wheel) string {
	t.Helper()
	dir := t.TempDir()
	want := filepath.Join(dir, "want.txt")
	if err := os.WriteFile(want, []byte("torch-npu=="+w.version+" --hash=sha256:"+w.sha256+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "--only-binary=:all:", "--python-version", "3.11", "--implementation", "cp",
			"--abi", "cp311", "--platform", w.tags, "-d", dir, "-r", want},
		{"-c", "import glob,zipfile; zipfile.ZipFile(glob.glob('*.whl')[0]).extractall('.')"},
	} {
		cmd := exec.CommandContext(t.Context(), "python3", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return filepath.Join(dir, "torch_npu")
}

func roots(pkg string) []string {
	return []string{filepath.Join(pkg, "include/third_party/acl/inc"), filepath.Join(pkg, "include/third_party/hccl/inc"), filepath.Join(pkg, "include")}
}

// The tables agree with the headers of three years of releases. It downloads 94 MB.
func TestWheels(t *testing.T) {
	if os.Getenv("GOTRAIN_NET_TESTS") == "" {
		t.Skip("GOTRAIN_NET_TESTS=1 downloads torch-npu from PyPI and compares the tables with its headers")
	}
	if _, err := Compiler(); err != nil {
		t.Skip(err)
	}
	for _, w := range wheels {
		t.Run(w.version, func(t *testing.T) {
			pkg := fetch(t, w)
			o := Options{Roots: roots(pkg), Tables: []Table{{"runtime", abi.Runtime()}, {"HCCL", abi.HCCL()}}}
			r, err := Run(t.Context(), o)
			if err != nil || !r.OK() {
				t.Fatalf("%v\n%s", err, r.Text())
			}
			t.Log(r.Text())
			for i, row := range r.Rows[:2] {
				if n := len(o.Tables[i].Functions); len(row.Absent) != w.absent[row.Table] || row.Equal != n-len(row.Absent) {
					t.Errorf("%s: %d of %d equal, %d are not declared, want %d: %v", row.Table, row.Equal, n, len(row.Absent), w.absent[row.Table], row.Absent)
				}
			}
			wrong(t, o)
			layout(t, o, w.config)
			if w.version == wheels[0].version {
				operators(t, filepath.Join(pkg, "lib", "libtorch_npu.so"))
			}
		})
	}
}

// wrong changes an entry of the table, which the headers must not accept.
func wrong(t *testing.T, o Options) {
	t.Helper()
	l := slices.Clone(abi.HCCL())
	i := slices.IndexFunc(l, func(f abi.Function) bool { return f.Name == "HcclAllReduce" })
	l[i].Args = append(append([]string{}, l[i].Args[:2]...), append([]string{"u4"}, l[i].Args[3:]...)...)
	o.Tables = []Table{{"HCCL", l}}
	r, err := Run(t.Context(), o)
	if err != nil || r.OK() || !slices.Equal(r.Rows[0].Differ, []string{"HcclAllReduce"}) {
		t.Errorf("a count of 32 bits in HcclAllReduce passes: %v %+v", err, r)
	}
}

// layout compares the size of a structure in a release, and makes sure that a wrong one is found.
func layout(t *testing.T, o Options, want []Value) {
	t.Helper()
	compiler, err := Compiler()
	if err != nil {
		t.Fatal(err)
	}
	at, err := index(o.Roots)
	if err != nil {
		t.Fatal(err)
	}
	o.Compiler = compiler
	c := &comparison{ctx: t.Context(), o: o, at: at}
	for _, d := range []int64{0, 8} {
		values := slices.Clone(want)
		values[1].Number += d
		row, err := c.values("configuration", values, "HcclAllReduce")
		if err != nil || row.Error != "" || len(row.Differ) != int(d/8) || row.Equal != 2-int(d/8) {
			t.Errorf("%v: %v %+v", values, err, row)
		}
	}
}

// composed are operators of CANN 8.1's headers that torch_npu 2.5.1 does not call by name.
var composed = []string{"MaxPool2dWithIndices", "MaxPool2dWithIndicesBackward", "ScaledMaskedSoftmax", "ScaledMaskedSoftmaxBackward", "Permute", "Expand",
	"SliceV2", "Slice", "GatherV2"}

// operators looks for the names of required operators in a library that finds them by name when it runs.
func operators(t *testing.T, library string) {
	t.Helper()
	text, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	var lack []string
	for _, o := range abi.Ops() {
		if o.Header != "" && !slices.Contains(composed, o.Name) && !bytes.Contains(text, []byte("aclnn"+o.Name+"\x00")) {
			lack = append(lack, o.Name)
		}
	}
	if len(lack) > 0 {
		t.Errorf("the oldest supported release does not know %s", strings.Join(lack, ", "))
	}
}
