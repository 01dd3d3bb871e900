package remote

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
)

// fake is a host with made-up facts.
type fake struct {
	name    string
	facts   Facts
	connect error
	reach   string // "": it reaches the first host
}

func (f *fake) Name() string { return f.name }
func (f *fake) Start(context.Context, launch.Part, launch.Events) error {
	return errors.New("not for jobs")
}
func (f *fake) Signal(syscall.Signal)         {}
func (f *fake) Kill()                         {}
func (f *fake) Running() bool                 { return false }
func (f *fake) Alive(int) bool                { return true }
func (f *fake) Finish()                       {}
func (f *fake) Close()                        {}
func (f *fake) Connect(context.Context) error { return f.connect }
func (f *fake) Ask(_ context.Context, q Question) (Answer, error) {
	facts := f.facts
	if facts.Now.IsZero() {
		facts.Now = time.Now()
	}
	a := Answer{Facts: &facts, Port: 4711}
	for range q.Addrs {
		a.Reach, a.From = append(a.Reach, f.reach), append(a.From, addrOf(facts.Addresses[0]))
	}
	return a, nil
}

// good is a host that passes all checks.
func good(name, addr string) *fake {
	return &fake{name: name, facts: Facts{OS: "linux", Arch: "arm64", Devices: 8, Cores: 64, Shm: 1 << 34, Addresses: []Address{{"eth0", addr + "/24", 9000}}}}
}

// The table ends at the first row with a failure, and says what to do.
func TestPreflight(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *fake)
		row    string // the last of the table
		says   string // in the error; "": all is well
	}{
		{"well", func(*fake) {}, "MTU", ""},
		{"ssh", func(f *fake) {
			f.connect = errors.New("remote: host n2: ssh ended with exit status 255: denied\nhint: ssh-copy-id")
		}, "agent",
			"n2: ssh ended with exit status 255: denied\nhint: ssh-copy-id"},
		{"processor", func(f *fake) { f.facts.Arch = "amd64" }, "processor", "n2: n2 is linux/amd64, n1 is linux/arm64\nhint: all ranks"},
		{"program", func(f *fake) { f.facts.Files = map[string]string{"PROGRAM": "0123456789"} }, "program", "PROGRAM is 01234567 there and "},
		{"no program", func(f *fake) { f.facts.Files = map[string]string{"PROGRAM": "error: open: no such file"} }, "program", "n2: open: no such file\nhint: install the same"},
		{"directory", func(f *fake) { f.facts.Dir = "stat /x: no such file or directory" }, "directory", "n2: stat /x: no such file or directory\nhint: the working"},
		{"devices", func(f *fake) { f.facts.Devices = 4 }, "devices", "n2: it has 4 NPUs, and the list says 8 slots"},
		{"clock", func(f *fake) { f.facts.Now = time.Now().Add(-time.Minute) }, "clock", "n2: its clock differs by -60.0s\nhint: start chrony"},
		{"shared memory", func(f *fake) { f.facts.Shm = 10 << 20 }, "/dev/shm", "n2: only 10 MiB are free in /dev/shm"},
		{"no way", func(f *fake) { f.reach = "connection refused" }, "reaches n1", "  n2 cannot reach n1 (10.0.0.1:4711): connection refused\nhint: choose the network"},
		{"MTU", func(f *fake) { f.facts.Addresses[0].MTU = 1500 }, "MTU", "n2: its interface has an MTU of 1500, that of n1 9000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "prog")
			if err := os.WriteFile(program, []byte("x"), 0o755); err != nil {
				t.Fatal(err)
			}
			hash, err := hashFile(program)
			if err != nil {
				t.Fatal(err)
			}
			n1, n2 := good("n1", "10.0.0.1"), good("n2", "10.0.0.2")
			n1.facts.Files = map[string]string{program: hash}
			n2.facts.Files = map[string]string{program: hash}
			c.change(n2)
			if v, ok := n2.facts.Files["PROGRAM"]; ok {
				n2.facts.Files = map[string]string{program: v}
			}
			var out bytes.Buffer
			p := Preflight{Nodes: []Node{n1, n2}, Slots: []int{8, 8}, Program: program, Out: &out}
			err = p.Run(t.Context())
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, c.row) || strings.Contains(last, "✗") != (c.says != "") {
				t.Errorf("the last row is %q", last)
			}
			if c.says == "" && err == nil {
				return
			}
			if err == nil || launch.ExitCode(err) != launch.ExitUnavailable || !strings.Contains(strings.ReplaceAll(err.Error(), program, "PROGRAM"), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

func TestOwn(t *testing.T) {
	self, _ := os.Hostname()
	for name, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.3.2.1": true, "::1": true, self: true, "192.0.2.77": false, "no.such.host.invalid": false,
	} {
		if got := Own(t.Context(), name, false); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, a := range addresses() {
		if !Own(t.Context(), addrOf(a), true) {
			t.Errorf("%s is an address of this machine", a.Prefix)
		}
	}
}

// The likeliest address comes first; addresses that every host has are no candidates.
func TestCandidates(t *testing.T) {
	f := &Facts{Server: "10.0.0.5", Addresses: []Address{{"docker0", "172.17.0.1/16", 1500}, {"eth0", "10.0.0.5/24", 1500}, {"ib0", "fd00::5/64", 2044},
		{"eth1", "192.168.9.5/24", 9000}}}
	for _, c := range []struct{ name, iface, want string }{
		{"n1.invalid", "", "10.0.0.5 192.168.9.5 fd00::5"},
		{"192.168.9.5", "", "192.168.9.5 10.0.0.5 fd00::5"},
		{"127.0.1.1", "", "10.0.0.5 192.168.9.5 fd00::5"},
		{"n1.invalid", "eth1", "192.168.9.5"},
		{"n1.invalid", "192.168.0.0/16,ib0", "fd00::5 192.168.9.5"},
		{"n1.invalid", "docker0", "172.17.0.1"},
	} {
		got, err := candidates(t.Context(), c.name, f, c.iface)
		if strings.Join(got, " ") != c.want || err != nil {
			t.Errorf("%s %s: %v %v, want %s", c.name, c.iface, got, err, c.want)
		}
	}
}
