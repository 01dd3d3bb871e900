package fakecann

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/npu/acl/abi"
)

// opCase is a call of an operator with what it must give: values of PyTorch, made by testdata/ops/cases.py.
type opCase struct {
	Name, Op      string
	Soc, Cann     int
	Deterministic *bool
	Args          []opArg
}

// opArg is an argument. Kind is T (tensor), N (null), S, I, F, B (arrays), L (list), s, i, f.
type opArg struct {
	Kind      string   `json:"k"`
	DType     string   `json:"d,omitempty"`
	Dims      []int    `json:"s,omitempty"`
	Strides   []int    `json:"st,omitempty"`
	Offset    int      `json:"o,omitempty"`
	Storage   int      `json:"n,omitempty"`
	Format    string   `json:"fmt,omitempty"`
	Values    []number `json:"v,omitempty"`   // of the storage; none: memory that was never written
	Want      []number `json:"w,omitempty"`   // of the view, in order
	Tolerance float64  `json:"tol,omitempty"` // relative, in place of the dtype's
	List      []opArg  `json:"l,omitempty"`
	Text      string   `json:"str,omitempty"`
	Alias     *int     `json:"a,omitempty"`    // the same memory as this tensor
	Make      string   `json:"make,omitempty"` // "triangle": the mask of causal attention
}

// number is a JSON number, or "nan", "inf", "-inf".
type number float64

func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	*n = number(v)
	return err
}

var dtypes = map[string]struct{ number, size int }{"f32": {0, 4}, "f16": {1, 2}, "i8": {2, 1}, "i32": {3, 4}, "u8": {4, 1}, "i16": {6, 2}, "i64": {9, 8},
	"f64": {11, 8}, "bool": {12, 1},
	"bf16": {27, 2}, "u64": {10, 8}}

var formats = map[string]int{"": 2, "nd": 2, "nchw": 0, "ncl": 47, "nhwc": 1}

// encode gives the bytes of a storage.
func (a *opArg) encode() []byte {
	size := dtypes[a.DType].size
	b := make([]byte, a.Storage*size)
	for i := range b {
		b[i] = 0xa5
	}
	for i, v := range a.Values {
		var u uint64
		switch f := float64(v); a.DType {
		case "f32":
			u = uint64(math.Float32bits(float32(f)))
		case "f64":
			u = math.Float64bits(f)
		case "bf16":
			u = uint64((math.Float32bits(float32(f)) + 0x8000) >> 16) // bf16 has the value but for the digits that cases.py cut off
		case "f16":
			u = uint64(halfBits(f))
		default:
			u = uint64(int64(f))
		}
		for k := range size {
			b[i*size+k] = byte(u >> (8 * k))
		}
	}
	return b
}

// halfBits encodes a value that f16 has, but for digits that were cut off.
func halfBits(f float64) uint16 {
	sign := uint16(0)
	if math.Signbit(f) {
		sign, f = 0x8000, -f
	}
	switch {
	case math.IsNaN(f):
		return 0x7e00
	case math.IsInf(f, 0):
		return sign | 0x7c00
	case f < 0x1p-14:
		return sign | uint16(math.Round(f*0x1p24))
	}
	frac, exp := math.Frexp(f)
	return sign | uint16(exp+14)<<10 | uint16(math.Round(frac*2048)-1024)
}

func halfValue(h uint16) float64 {
	exp, man := int(h>>10&31), float64(h&1023)
	v := math.Ldexp(man+1024, exp-25)
	switch {
	case exp == 31 && man != 0:
		return math.NaN()
	case exp == 31:
		v = math.Inf(1)
	case exp == 0:
		v = math.Ldexp(man, -24)
	}
	if h&0x8000 != 0 {
		return -v
	}
	return v
}

// view reads the view's elements out of a storage.
func (a *opArg) view(b []byte) []float64 {
	size := dtypes[a.DType].size
	n := 1
	for _, d := range a.Dims {
		n *= d
	}
	out := make([]float64, n)
	for i := range out {
		at, rest := a.Offset, i
		for d := len(a.Dims) - 1; d >= 0; d-- {
			at += rest % a.Dims[d] * a.Strides[d]
			rest /= a.Dims[d]
		}
		var u uint64
		for k := range size {
			u |= uint64(b[at*size+k]) << (8 * k)
		}
		switch a.DType {
		case "f32":
			out[i] = float64(math.Float32frombits(uint32(u)))
		case "f64":
			out[i] = math.Float64frombits(u)
		case "bf16":
			out[i] = float64(math.Float32frombits(uint32(u) << 16))
		case "f16":
			out[i] = halfValue(uint16(u))
		case "i8":
			out[i] = float64(int8(u))
		case "i16":
			out[i] = float64(int16(u))
		case "i32":
			out[i] = float64(int32(u))
		case "i64":
			out[i] = float64(int64(u))
		default:
			out[i] = float64(u)
		}
	}
	return out
}

// driver is a process that calls operators.
type driver struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// buildDriver compiles the operators for the driver, with sanitizers where the machine has them.
var buildDriver = sync.OnceValues(func() (string, error) {
	var extra []string
	if runtime.GOARCH == "amd64" {
		extra = []string{"-fsanitize=address,undefined", "-fno-sanitize=alignment", "-fno-sanitize-recover=all"}
	}
	c, err := newCompiler(extra...)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile("testdata/ops/driver.c")
	if err != nil {
		return "", err
	}
	var table strings.Builder
	table.WriteString("#include \"fake.h\"\n")
	for _, o := range abi.Ops() {
		fmt.Fprintf(&table, "extern const fop fop_%s __attribute__((weak));\n", o.Name)
	}
	table.WriteString("const struct { const char *name; const fop *op; } driver_ops[] = {\n")
	for _, o := range abi.Ops() {
		fmt.Fprintf(&table, "{%q, &fop_%s},\n", o.Name, o.Name)
	}
	table.WriteString("{0}};\n")
	texts := map[string]string{"driver": string(text), "driver_ops": table.String()}
	files, err := filepath.Glob("src/*.c")
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if name := filepath.Base(f); strings.HasPrefix(name, "op_") || name == "value.c" {
			text, err := os.ReadFile(f)
			if err != nil {
				return "", err
			}
			texts[strings.TrimSuffix(name, ".c")] = string(text)
		}
	}
	objects := make([]string, len(texts))
	errs := make([]error, len(texts))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i, n := range slices.Sorted(maps.Keys(texts)) {
		wg.Go(func() {
			slots <- struct{}{}
			objects[i], errs[i] = c.object(n, texts[n])
			<-slots
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp("", "fakecann-driver-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "driver")
	return file, c.run(slices.Concat(extra, objects, []string{"-o", file, "-lm"})...)
})

func newDriver(t *testing.T) *driver {
	t.Helper()
	file, err := buildDriver()
	if err == ErrNoCompiler {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file)
	cmd.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=0")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error("the driver: ", err)
		}
	})
	return &driver{in, bufio.NewReaderSize(out, 1<<20)}
}

// answer is what a call gave: the code of the check with its text, and the storages of all tensors behind a run.
type answer struct {
	code       int
	text       string
	storage    [][]byte
	tensors    []*opArg
	outOfRange int // indices
}

func (d *driver) line(t *testing.T) string {
	t.Helper()
	s, err := d.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the driver ended: %v", err)
	}
	return strings.TrimSuffix(s, "\n")
}

// call runs a case.
func (d *driver) call(t *testing.T, c *opCase, seed int) answer {
	t.Helper()
	var tensors, args strings.Builder
	var all []*opArg
	tensor := func(a *opArg) int {
		alias := -1
		if a.Make == "triangle" {
			alias = -2
			a.DType, a.Dims, a.Strides, a.Storage = "bool", []int{2048, 2048}, []int{2048, 1}, 2048*2048
		}
		if a.Alias != nil {
			alias = *a.Alias
		}
		fmt.Fprintf(&tensors, "tensor %d %d %d %d %d %d", dtypes[a.DType].number, formats[a.Format], a.Offset, a.Storage, alias, len(a.Dims))
		for _, v := range slices.Concat(a.Dims, a.Strides) {
			fmt.Fprintf(&tensors, " %d", v)
		}
		if alias == -1 {
			fmt.Fprintf(&tensors, " %s", hex.EncodeToString(a.encode())) // no text for an empty storage
		}
		tensors.WriteString("\n")
		all = append(all, a)
		return len(all) - 1
	}
	for i := range c.Args {
		switch a := &c.Args[i]; a.Kind {
		case "T":
			fmt.Fprintf(&args, "T %d\n", tensor(a))
		case "L":
			fmt.Fprintf(&args, "L %d", len(a.List))
			for j := range a.List {
				n := -1
				if a.List[j].Kind == "T" {
					n = tensor(&a.List[j])
				}
				fmt.Fprintf(&args, " %d", n)
			}
			args.WriteString("\n")
		case "I", "F", "B":
			fmt.Fprintf(&args, "%s %d", a.Kind, len(a.Values))
			for _, v := range a.Values {
				fmt.Fprintf(&args, " %v", float64(v))
			}
			args.WriteString("\n")
		case "S":
			fmt.Fprintf(&args, "S %d %v %d\n", dtypes[a.DType].number, float64(a.Values[0]), whole(float64(a.Values[0])))
		case "s":
			fmt.Fprintf(&args, "s %s\n", a.Text)
		case "i":
			fmt.Fprintf(&args, "i %d\n", int64(a.Values[0]))
		case "f":
			fmt.Fprintf(&args, "f %v\n", float64(a.Values[0]))
		default:
			args.WriteString("N\n")
		}
	}
	soc, cann, deterministic := c.Soc, c.Cann, 1
	if soc == 0 {
		soc = 1
	}
	if cann == 0 {
		cann = 81
	}
	if c.Deterministic != nil && !*c.Deterministic {
		deterministic = 0
	}
	if soc == 9 {
		soc = 0 // the first generation, whose number is the zero value
	}
	if _, err := fmt.Fprintf(d.in, "call %s %d %d %d %d\n%v%vend\n", c.Op, soc, cann, deterministic, seed, &tensors, &args); err != nil {
		t.Fatal(err)
	}
	r := answer{tensors: all}
	var rest string
	rest, _ = strings.CutPrefix(d.line(t), "rc ")
	code, text, _ := strings.Cut(rest, " ")
	r.code, _ = strconv.Atoi(code)
	r.text = text
	if r.code != 0 {
		return r
	}
	if _, err := fmt.Sscanf(d.line(t), "run 0 %d", &r.outOfRange); err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	for range all {
		b, err := hex.DecodeString(d.line(t))
		if err != nil {
			t.Fatal(err)
		}
		r.storage = append(r.storage, b)
	}
	return r
}

// tolerance of a result: one rounding to its dtype, and a little for f32 sums.
var tolerance = map[string]float64{"f32": 1e-5, "f64": 1e-9, "bf16": 0x1p-8, "f16": 0x1p-11 * 1.1}

func (a *opArg) compare(t *testing.T, name string, i int, storage []byte) {
	t.Helper()
	got := a.view(storage)
	tol, abs := tolerance[a.DType], 0.0
	if a.Tolerance != 0 {
		tol = a.Tolerance
	}
	for _, w := range a.Want {
		if !math.IsInf(float64(w), 0) && !math.IsNaN(float64(w)) {
			abs = max(abs, math.Abs(float64(w)))
		}
	}
	for j, w := range a.Want {
		g, w := got[j], float64(w)
		if math.IsNaN(w) != math.IsNaN(g) || (g != w && !(math.Abs(g-w) <= tol*math.Abs(w)+tol*abs/16)) && !math.IsNaN(w) {
			t.Errorf("%s: tensor %d, element %d: %v, want %v", name, i, j, g, w)
			return
		}
	}
	if a.Want != nil && len(got) != len(a.Want) {
		t.Errorf("%s: tensor %d: %d values, want %d", name, i, len(got), len(a.Want))
	}
}

func readCases(t *testing.T) []opCase {
	t.Helper()
	var cases []opCase
	files, err := filepath.Glob("testdata/ops/cases*.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		file, err := os.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		text, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		var l []opCase
		if err := json.NewDecoder(text).Decode(&l); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		cases = append(cases, l...)
	}
	return cases
}

// Every operator gives what PyTorch gives, through views as well, and writes nothing outside its results.
func TestOperators(t *testing.T) {
	d := newDriver(t)
	right := map[string]bool{}
	for _, c := range readCases(t) {
		a := d.call(t, &c, 1)
		if a.code != 0 {
			t.Errorf("%s: refused with %d: %s", c.Name, a.code, a.text)
			continue
		}
		wants := 0
		for i, x := range a.tensors {
			if x.Want != nil {
				wants++
				x.compare(t, c.Name, i, a.storage[i])
				x.outside(t, c.Name, i, a.storage[i])
			} else if x.Values != nil && x.Alias == nil && string(x.encode()) != string(a.storage[i]) {
				t.Errorf("%s: input tensor %d was written", c.Name, i)
			}
		}
		if wants == 0 {
			t.Errorf("%s wants nothing", c.Name)
		}
		right[c.Op] = true
	}
	for _, o := range abi.Ops() {
		if !right[o.Name] && !slices.Contains(leftOut, o.Name) && !slices.Contains(elsewhere, o.Name) {
			t.Errorf("%s has no case with a right result", o.Name)
		}
	}
}

// outside checks that the elements of a storage that the view does not show stay as they were.
func (a *opArg) outside(t *testing.T, name string, i int, storage []byte) {
	t.Helper()
	was, size := a.encode(), dtypes[a.DType].size
	shown := map[int]bool{}
	for j := range len(a.Want) {
		at, rest := a.Offset, j
		for d := len(a.Dims) - 1; d >= 0; d-- {
			at += rest % a.Dims[d] * a.Strides[d]
			rest /= a.Dims[d]
		}
		shown[at] = true
	}
	for e := range a.Storage {
		if !shown[e] && string(was[e*size:(e+1)*size]) != string(storage[e*size:(e+1)*size]) {
			t.Errorf("%s: tensor %d: element %d of its storage, outside the view, was written", name, i, e)
			return
		}
	}
}

// leftOut are the operators of the table that the fake does not have; elsewhere are those that other tests cover.
var (
	leftOut   = strings.Fields("FlashAttentionVarLenScore FlashAttentionUnpaddingScoreGrad IncreFlashAttentionV4 FusedInferAttentionScoreV2")
	elsewhere = strings.Fields("DropoutGenMaskV2 DropoutGenMaskV2Tensor InplaceUniform InplaceNormal")
)

// whole is what a scalar is as an integer.
func whole(v float64) int64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return int64(v)
}
