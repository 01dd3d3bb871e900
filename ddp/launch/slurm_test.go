package launch

import (
	"fmt"
	"strings"
	"testing"
)

func TestSlurmHosts(t *testing.T) {
	for in, want := range map[string]string{
		"node[03-05,9],x": "node03 node04 node05 node9 x", "a,b": "a b", "a": "a", "n[1,2]-eth0,q": "n1-eth0 n2-eth0 q",
		"r[1-2]n[0-1]": "r1n0 r1n1 r2n0 r2n1", "n[08-11]": "n08 n09 n10 n11", "n[7]": "n7", "[1-2]": "1 2", "gpu-a1.site, gpu-a2.site": "gpu-a1.site gpu-a2.site",
		"tux[0-1]x[2],rack0-[5]": "tux0x2 tux1x2 rack0-5",
	} {
		got, err := SlurmHosts(in)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v, want %s", in, got, err, want)
		}
	}
	for _, bad := range []string{"", "bad[1", "a]", "a[1]]", "a[]", "a[x]", "a[2-1]", "a[1-]", "a[-1]", "a,,b",
		"a[1-999999999]", "a[0-99999][0-99999]", "a[[1]]", "a[1,]"} {
		if got, err := SlurmHosts(bad); err == nil {
			t.Errorf("%q: %.50q", bad, got)
		}
	}
}

func TestSlurmTasks(t *testing.T) {
	got, err := SlurmTasks("4(x2),2")
	if err != nil || fmt.Sprint(got) != "[4 4 2]" {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range []string{"", "x", "4(x", "4(x2", "4(x0)", "-1", "0", "1(x99999999)", "4x2"} {
		if got, err := SlurmTasks(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func FuzzSlurmHosts(f *testing.F) {
	f.Add("node[03-05,9],x,r[1-2]n[0-1]")
	f.Add("a[1-9][0-9][0-9],b")
	f.Fuzz(func(t *testing.T, s string) {
		list, err := SlurmHosts(s)
		if err != nil {
			return
		}
		for _, h := range list {
			if h == "" || strings.ContainsAny(h, "[],") {
				t.Fatalf("%q has the host %q", s, h)
			}
		}
		if len(list) == 0 || len(list) > maxWorld {
			t.Fatalf("%q has %d hosts", s, len(list))
		}
	})
}
