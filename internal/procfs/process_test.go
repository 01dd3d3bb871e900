package procfs

import (
	"os"
	"runtime"
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	const rest = " 41 40 40 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 7715 1 2 3"
	for line, want := range map[string]Process{
		"42 (sh) S" + rest:             {"S", 41, 40, "7715"},
		"42 (a) Z 1 2 (b) c) Z" + rest: {"Z", 41, 40, "7715"}, // the process chose its name
	} {
		if p, err := parse(line); err != nil || p != want {
			t.Errorf("%q: %+v, %v", line, p, err)
		}
	}
	for _, line := range []string{"", "42 (sh)", "42 (sh) S 1 2", "42 (sh) S x" + rest[3:], "42 (sh) S 41 x" + rest[6:]} {
		if p, err := parse(line); err == nil {
			t.Errorf("%q is %+v", line, p)
		}
	}
}

func TestThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	p, err := Read(os.Getpid())
	if err != nil || p.Parent != os.Getppid() || p.Ended() || p.Start == "" {
		t.Errorf("%+v, %v", p, err)
	}
	if !slices.ContainsFunc(All(), func(q Process) bool { return q.Parent == p.Parent && q.Start == p.Start && q.Group == p.Group }) {
		t.Error("All does not list this process")
	}
	if _, err := Read(1 << 30); err == nil {
		t.Error("a process that does not exist")
	}
}
