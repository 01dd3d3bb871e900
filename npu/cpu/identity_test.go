//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/tune"
)

var _ tune.Identified = (*Device)(nil)

func TestProcessor(t *testing.T) {
	for text, want := range map[string]string{
		"processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9R45\nflags\t: fpu\n\nprocessor\t: 1\nmodel name\t: another\n": "AMD EPYC 9R45",
		"processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd4f\n\nprocessor\t: 1\n":         "arm 0x41 0x0 0xd4f",
		"": "unknown processor",
	} {
		if got := (machine{fstest.MapFS{"proc/cpuinfo": {Data: []byte(text)}}}).processor(); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// Another number of threads or another instruction set makes another machine of it.
func TestIdentity(t *testing.T) {
	seen := map[string]bool{}
	for _, threads := range []int{1, 2} {
		for _, isa := range []string{"avx2", "base"} {
			t.Setenv("GOTRAIN_MAX_ISA", isa)
			d, err := Open(npu.Options{Threads: threads})
			if err != nil {
				t.Skip(err)
			}
			seen[d.Identity()] = true
			if !strings.Contains(d.Identity(), "thread") {
				t.Errorf("%q", d.Identity())
			}
			d.Close()
		}
	}
	if len(seen) < 2 {
		t.Errorf("%v", seen)
	}
}
