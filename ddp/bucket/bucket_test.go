package bucket

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

var update = flag.Bool("update", false, "write testdata anew; look at the difference before you commit it")

// TestGolden runs the scripts in testdata. A script is cases of the form
//
//	plan cap=100 first=20 last=20 world=2 align=8
//	name dtype elems [group]
//	…
//	----
//	the expected plan
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { golden(t, file) })
	}
}

func golden(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for i, c := range strings.Split(strings.TrimSpace(string(b)), "\n\n") {
		input, want, _ := strings.Cut(c, "\n----\n")
		got := strings.TrimSpace(runCase(t, input))
		fmt.Fprintf(&out, "%s\n----\n%s\n\n", input, got)
		if got != strings.TrimSpace(want) && !*update {
			t.Errorf("case %d:\n%s\n---- got\n%s\n---- want\n%s", i, input, got, want)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.TrimSpace(out.String())+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func runCase(t *testing.T, input string) string {
	lines := strings.Split(input, "\n")
	var cfg Config
	for _, f := range strings.Fields(lines[0])[1:] {
		key, val, _ := strings.Cut(f, "=")
		n, err := strconv.ParseInt(val, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		switch key {
		case "cap":
			cfg.CapBytes = n
		case "first":
			cfg.FirstBytes = n
		case "last":
			cfg.LastBytes = n
		case "world":
			cfg.World = int(n)
		case "align":
			cfg.AlignBytes = n
		default:
			t.Fatal("key ", key)
		}
	}
	var params []Param
	for _, line := range lines[1:] {
		f := strings.Fields(line)
		dt, err := npu.ParseDType(f[1])
		if err != nil {
			t.Fatal(err)
		}
		p := Param{Name: f[0], DType: dt}
		p.Elems, _ = strconv.ParseInt(f[2], 10, 64)
		if len(f) > 3 {
			p.Group, _ = strconv.Atoi(f[3])
		}
		params = append(params, p)
	}
	p, err := New(params, cfg)
	if err != nil {
		return "error: " + err.Error()
	}
	return show(p)
}

func show(p *Plan) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d bytes, fingerprint %s\n", p.Bytes, p.Fingerprint())
	for k, b := range p.Buckets {
		fmt.Fprintf(&s, "bucket %d at %d: %v %d bytes, payload %d, ready with %s\n", k, b.Offset, b.DType, b.Bytes, b.Payload, p.Params[b.Ready].Name)
		for _, r := range b.Runs {
			fmt.Fprintf(&s, "  group %d at %d: %d elems:", r.Group, r.Offset, r.Elems)
			for _, pl := range b.Places[r.First:r.Last] {
				fmt.Fprintf(&s, " %s@%d", p.Params[pl.Param].Name, pl.Offset)
			}
			s.WriteByte('\n')
		}
	}
	return s.String()
}

// TestProperties plans random lists and checks what must hold for every plan.
func TestProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		params, mixed := make([]Param, rng.IntN(60)), rng.IntN(2) == 0
		for i := range params {
			params[i] = Param{Name: fmt.Sprint("p", i), Elems: 1 + rng.Int64N(1<<rng.IntN(14)), DType: npu.F32, Group: rng.IntN(3)}
			if mixed && rng.IntN(5) == 0 {
				params[i].DType = npu.BF16
			}
		}
		cfg := Config{CapBytes: 1 << (8 + rng.IntN(10)), World: 1 + rng.IntN(5), AlignBytes: 8 << rng.IntN(4)}
		cfg.FirstBytes = 1 + rng.Int64N(cfg.CapBytes)
		p, err := New(params, cfg)
		if err != nil {
			t.Fatal(err)
		}
		verify(t, p)
		again, _ := New(params, cfg)
		if again.Fingerprint() != p.Fingerprint() || show(again) != show(p) {
			t.Fatal("not deterministic")
		}
	}
}

func verify(t *testing.T, p *Plan) {
	t.Helper()
	placed := make([]int, len(p.Params))
	end, ready := int64(0), -1
	for k, b := range p.Buckets {
		if b.Offset < end || b.Offset%pageBytes != 0 {
			t.Fatalf("bucket %d at %d overlaps the one before, which ends at %d", k, b.Offset, end)
		}
		end = b.Offset + b.Bytes
		if b.Ready <= ready {
			t.Fatalf("bucket %d is ready before the one in front of it", k)
		}
		ready = b.Ready
		if b.Bytes%(int64(p.Config.World)*p.Config.AlignBytes) != 0 || b.Elems*int64(b.DType.Size()) != b.Bytes {
			t.Fatalf("bucket %d: %d bytes do not split among %d ranks", k, b.Bytes, p.Config.World)
		}
		at, used := int64(0), int64(0)
		for i, pl := range b.Places {
			q := p.Params[pl.Param]
			placed[pl.Param]++
			if pl.Offset < at || pl.Offset%p.Config.AlignBytes != 0 || pl.Bytes != q.Bytes || q.DType != b.DType || pl.Param > b.Ready {
				t.Fatalf("bucket %d place %d: %+v of %+v", k, i, pl, q)
			}
			at = pl.Offset + pl.Bytes
			used += align(pl.Bytes, p.Config.AlignBytes)
			if bk, got := p.Of(pl.Param); bk != k || got != pl {
				t.Fatalf("Of(%d) = %d %+v", pl.Param, bk, got)
			}
		}
		if at > b.Bytes || len(b.Places) > 1 && used > p.Config.CapBytes && !absorbed(p, b) {
			t.Fatalf("bucket %d of %d bytes is over the cap of %d", k, used, p.Config.CapBytes)
		}
		next, group := 0, -1
		for _, r := range b.Runs {
			if r.First != next || r.Group <= group {
				t.Fatalf("bucket %d: run %+v after place %d, group %d", k, r, next, group)
			}
			next, group = r.Last, r.Group
			last := b.Places[r.Last-1]
			if r.Offset != b.Places[r.First].Offset || r.Offset+r.Elems*int64(b.DType.Size()) != last.Offset+last.Bytes {
				t.Fatalf("bucket %d: run %+v does not span its places", k, r)
			}
		}
		if next != len(b.Places) {
			t.Fatalf("bucket %d: runs cover %d of %d places", k, next, len(b.Places))
		}
	}
	if end > p.Bytes {
		t.Fatalf("plan of %d bytes, last bucket ends at %d", p.Bytes, end)
	}
	for i, n := range placed {
		if n != 1 {
			t.Fatalf("parameter %d is placed %d times", i, n)
		}
	}
	// The caps of the ends, where dtypes do not interleave.
	if n := len(p.Buckets); n > 1 && !slices.ContainsFunc(p.Params, func(q Param) bool { return q.DType != npu.F32 }) {
		if first := p.Buckets[0]; len(first.Places) > 1 && first.Payload > p.Config.FirstBytes && !absorbed(p, first) {
			t.Fatalf("first bucket has %d bytes", first.Payload)
		}
		if last := p.Buckets[n-1]; len(last.Places) > 1 && last.Payload > p.Config.LastBytes && !absorbed(p, last) {
			t.Fatalf("last bucket has %d bytes", last.Payload)
		}
	}
}

// absorbed says whether a bucket is a parameter above the cap, with next to nothing beside it.
func absorbed(p *Plan, b Bucket) bool {
	above, rest := 0, int64(0)
	for _, pl := range b.Places {
		if n := align(pl.Bytes, p.Config.AlignBytes); n > p.Config.CapBytes {
			above++
		} else {
			rest += n
		}
	}
	return above == 1 && rest <= p.Config.CapBytes/small
}

// TestSmallEnds simulates a step with constant speeds of compute and wire: with small ends, less communication is exposed than
// with a large last bucket.
func TestSmallEnds(t *testing.T) {
	var params []Param
	for i := range 100 {
		params = append(params, Param{Name: fmt.Sprint(i), Elems: 1 << 18, DType: npu.F32})
	}
	exposed := func(cfg Config) (x float64) {
		p, err := New(params, cfg)
		if err != nil {
			t.Fatal(err)
		}
		const perParam, perByte = 1.0, 0.8 / (1 << 20) // compute, and a wire that needs four fifths of it
		free := 0.0
		for _, b := range p.Buckets {
			free = max(free, perParam*float64(b.Ready+1)) + perByte*float64(b.Bytes)
		}
		return free - perParam*float64(len(params))
	}
	small := exposed(Config{CapBytes: 25 << 20, FirstBytes: 1 << 20})
	large := exposed(Config{CapBytes: 25 << 20, FirstBytes: 1 << 20, LastBytes: 25 << 20})
	if small >= large {
		t.Errorf("exposed %.1f with a small last bucket, %.1f with a large one", small, large)
	}
}

func ExampleNew() {
	p, err := New([]Param{
		{Name: "fc.bias", Elems: 10, DType: npu.F32, Group: 1},
		{Name: "fc.weight", Elems: 5120, DType: npu.F32},
		{Name: "conv.weight", Elems: 9408, DType: npu.F32},
	}, Config{World: 2, FirstBytes: 24 << 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(p)
	k, place := p.Of(0)
	fmt.Println("fc.bias is in bucket", k, "at byte", place.Offset)
	// Output:
	// bucket 0: f32, 20608 bytes (20520 of gradients), 2 parameters: fc.bias … fc.weight
	// bucket 1: f32, 37632 bytes (37632 of gradients), 1 parameters: conv.weight
	// fc.bias is in bucket 0 at byte 20480
}
