package shm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Some arm64 systems have pages of 64 KiB, and map only multiples of them.
func TestLargePages(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	g, err := NewLocal(3)
	if err != nil {
		t.Fatal(err)
	}
	const page = 64 << 10
	for _, c := range g {
		defer c.Close()
		c.(*Comm).heap.page = page
	}
	each(t, g, func(c comm.Communicator) error {
		for _, elems := range []int64{1, 1000, 5000, 300000, 700001} {
			b, err := c.Alloc(elems * 4)
			if err != nil {
				return err
			}
			if base := b.(*buffer).base; base%page != 0 {
				t.Errorf("a region begins at %d", base)
			}
			v := comm.View[float32](comm.Mem{Ptr: nptr(b), Elems: elems, DType: 1})
			for i := range v {
				v[i] = 1
			}
			if err := comm.Wait(ctx)(c.AllReduce(ctx, comm.Mem{Ptr: nptr(b), Elems: elems, DType: 1}, comm.Sum)); err != nil {
				return err
			}
			for i := range v {
				if v[i] != 3 {
					return fmt.Errorf("%d elements: [%d] = %v", elems, i, v[i])
				}
			}
		}
		return nil
	})
	if _, err := g[0].(*Comm).heap.mapped(g[0].(*Comm).files.heap, pageBytes, page); err == nil {
		t.Error("a region of a peer with other pages is mapped")
	}
}

// The order of memory operations of arm64 is weak, which no emulator shows. So look at the code that the compiler makes: the flag of a round is stored with
// a release (STLR), and loaded with an acquire (LDAR), as are the words of Note [sleeping].
func TestOrderOnARM64(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the package for arm64")
	}
	cmd := exec.Command("go", "build", "-gcflags=-S", ".")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("cannot compile for arm64: %v\n%.500s", err, out)
	}
	code := map[string]string{}
	name := ""
	header := regexp.MustCompile(`^github\.com/gotrain/gotrain/ddp/comm/shm\.(\S+) STEXT`)
	for line := range strings.Lines(string(out)) {
		if m := header.FindStringSubmatch(line); m != nil {
			name = m[1]
		}
		code[name] += line
	}
	for _, c := range []struct {
		function, instruction string
		least                 int
	}{
		{"storeRelease", "STLR", 1},
		{"(*Comm).publish", "STLR", 1},
		{"(*Comm).reached", "LDAR", 1},
		{"(*Comm).missing", "LDAR", 1},
		{"(*Comm).wakeSleepers", "LDARW", 1}, // sleepers, then the flags
		{"(*bell).ring", "LDARW", 1},
	} {
		if n := strings.Count(code[c.function], "\t"+c.instruction); n < c.least {
			t.Errorf("%s has %d of %s, want %d:\n%s", c.function, n, c.instruction, c.least, code[c.function])
		}
	}
}
