package launch

import (
	"fmt"
	"slices"
	"testing"
)

func TestShare(t *testing.T) {
	// Processors that the system knows nothing about are cores of their own, so high numbers make the test independent of the machine.
	const base = 60000
	for _, c := range []struct {
		cpus, ranks int
		want        string
	}{
		{2, 1, "[0 1]/2"},
		{2, 2, "[0]/1 [1]/1"},
		{5, 2, "[0 1 2]/2 [3 4]/2"},
		{2, 3, "[]/1 []/1 []/1"},
		{8, 4, "[0 1]/2 [2 3]/2 [4 5]/2 [6 7]/2"},
	} {
		var cpus []int
		for i := range c.cpus {
			cpus = append(cpus, base+i)
		}
		got := ""
		for i, p := range Share(cpus, c.ranks) {
			if i > 0 {
				got += " "
			}
			rel := []int{}
			for _, x := range p.CPUs {
				rel = append(rel, x-base)
			}
			got += fmt.Sprintf("%v/%d", rel, p.Threads)
		}
		if got != c.want {
			t.Errorf("%d processors, %d ranks: %s, want %s", c.cpus, c.ranks, got, c.want)
		}
	}
}

func TestParseCPUs(t *testing.T) {
	for in, want := range map[string]string{"0": "0", "3,1,2": "1-3", "0-3,8": "0-3,8", "1,1": "1", " 1 , 5-6": "1,5-6"} {
		cpus, err := ParseCPUs(in)
		if err != nil || FormatCPUs(cpus) != want {
			t.Errorf("%q: %v %v, want %s", in, cpus, err, want)
		}
	}
	for _, bad := range []string{"", "x", "3-1", "-1", "1-", "1-999999999", "0x1"} {
		if cpus, err := ParseCPUs(bad); err == nil {
			t.Errorf("%q was read as %v", bad, cpus)
		}
	}
}

func FuzzParseCPUs(f *testing.F) {
	f.Add("0-3,8")
	f.Fuzz(func(t *testing.T, s string) {
		cpus, err := ParseCPUs(s)
		if err != nil {
			return
		}
		again, err := ParseCPUs(FormatCPUs(cpus))
		if err != nil || !slices.Equal(cpus, again) {
			t.Fatalf("%q: %v came back as %v, %v", s, cpus, again, err)
		}
	})
}

func TestPlace(t *testing.T) {
	id := Identity{LocalWorld: 2}
	p, err := Place(id, env("GOTRAIN_CPUS=0-3 GOTRAIN_THREADS=3"))
	if err != nil || FormatCPUs(p.CPUs) != "0-3" || p.Threads != 3 {
		t.Errorf("%+v %v", p, err)
	}
	if _, err := Place(id, env("GOTRAIN_CPUS=many")); err == nil {
		t.Error("a wrong list of processors was taken")
	}
	if _, err := Place(id, env("GOTRAIN_THREADS=0")); err == nil {
		t.Error("no threads were taken")
	}
	if p, err := Place(id, env("")); err != nil || p.Threads < 1 {
		t.Errorf("%+v %v", p, err)
	}
}
