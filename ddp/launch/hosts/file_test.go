package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// show writes hosts with all that is known of them.
func show(l List) string {
	var out []string
	for _, h := range l.Hosts {
		s := h.String()
		if h.Port != 0 {
			s += fmt.Sprintf(" port %d", h.Port)
		}
		if h.Devices != nil {
			s += fmt.Sprint(" devices ", h.Devices)
		}
		if h.Ranks != nil {
			s += fmt.Sprint(" ranks ", h.Ranks)
		}
		if h.Addr != "" {
			s += " at " + h.Addr
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

// Every form of a line that people have in their host files.
func TestLines(t *testing.T) {
	for in, want := range map[string]string{
		"n1 slots=8":                             "n1:8",
		"n1  slots = 8   # the first":            "n1:8",
		"n1 slots=8 max_slots=16":                "n1:8",
		"n1 slots=8 max-slots=16\nn2 slots=4":    "n1:8; n2:4",
		"n1 max_slots=16":                        "n1",
		"n1:8":                                   "n1:8",
		"n1:8\nn2:8\n":                           "n1:8; n2:8",
		"n1":                                     "n1",
		"n1\nn2":                                 "n1; n2",
		"n1\nn1":                                 "n1:2",
		"n1\nn2\nn1\nn1":                         "n1:3; n2",
		"n1 n1":                                  "n1:2",
		"n1 slots=2\nn1 slots=3":                 "n1:5",
		"n1:2\nn1":                               "n1:3",
		"[fe80::1]:8":                            "[fe80::1]:8",
		"fe80::1":                                "[fe80::1]",
		"fe80::1%eth0 slots=2":                   "[fe80::1%eth0]:2",
		"[fe80::1]":                              "[fe80::1]",
		"root@n1:8":                              "root@n1:8",
		"ma-user@10.0.0.1 slots=8 port=2222":     "ma-user@10.0.0.1:8 port 2222",
		"n1 username=me slots=1":                 "me@n1:1",
		"root@n1:4\nn1:4":                        "root@n1:4; n1:4",
		"n1 cpu=4":                               "n1:4",
		"n1 slots=auto":                          "n1",
		"worker-0.job.ns.svc slots=1\r\n":        "worker-0.job.ns.svc:1",
		"# only\n\n  \t\n n1 # c\n#n2\nn3#x":     "n1; n3",
		"\xef\xbb\xbfn1:8":                       "n1:8",
		"worker-1 slots=4\nworker-2 slots=4\n\n": "worker-1:4; worker-2:4",
	} {
		l, err := Parse([]byte(in), "file")
		if got := show(l); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", in, got, err, want)
		}
	}
}

func TestBadLines(t *testing.T) {
	for in, want := range map[string]string{
		"n1:8\nn2 slots=x # two": `hosts: f:2: slots=x is not a number from 1 to 4096: "n2 slots=x # two"`,
		"n1:0":                   `f:1: the number of slots is not a number from 1 to 4096: "n1:0"`,
		"n1:":                    "the number of slots is not a number",
		"n1:99999":               "the number of slots is not a number",
		"n1:8 slots=8":           "given twice",
		"n1 n2":                  `"n2" is neither an option nor the same host again`,
		"n1 slots 4":             `"slots" is neither`,
		"n1 slost=4":             "there is no option slost",
		"-oProxyCommand=sh":      "not the name of a host",
		"-l@n1":                  "not a user name",
		"a b@n1":                 "neither",
		"me@-x":                  "not the name of a host",
		"n1;reboot":              "not the name of a host",
		"$(x)":                   "not the name of a host",
		"n1 port=0":              "not a port",
		"n1 user=-x":             "not a user name",
		"[fe80::1:8":             "no ]",
		"[n1]:8":                 "not an IPv6 address",
		"[fe80::1]8":             "after ] only",
		"a:b:c":                  "not host:slots, and not an IPv6 address",
		"":                       "f: no host in it",
		"# nothing":              "no host in it",
		"@n1":                    "not a user name",
	} {
		l, err := Parse([]byte(in), "f")
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) || e.ExitCode() != 64 {
			t.Errorf("%q: %s, error %v, want one with %q", in, show(l), err, want)
		}
	}
}

func TestList(t *testing.T) {
	for in, want := range map[string]string{
		"a:8,b:8": "a:8; b:8", "a": "a:1", "a,b,a": "a:2; b:1", "u@a:2, b": "u@a:2; b:1", "[::1]:3,127.0.0.1:2": "[::1]:3; 127.0.0.1:2",
	} {
		l, err := ParseList(in)
		if got := show(l); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", in, got, err, want)
		}
		if n, known := l.Slots(); !known || n < 1 {
			t.Errorf("%q: %d %v", in, n, known)
		}
	}
	for _, bad := range []string{"", "a,,b", "a:x", ",", "-x:1"} {
		if l, err := ParseList(bad); err == nil {
			t.Errorf("%q: %s", bad, show(l))
		}
	}
	if _, known := (List{Hosts: []Host{{Name: "a"}}}).Slots(); known {
		t.Error("the slots of a bare line are known")
	}
}

func TestTables(t *testing.T) {
	for file, want := range map[string]string{
		"table-1.0.json":       "10.0.0.1:2 devices [4 5] ranks [0 1]; 10.0.0.2:2 devices [0 1] ranks [2 3] at 10.0.0.2",
		"table-1.2.json":       "10.0.0.1:1 devices [0] ranks [0] at 10.0.0.1; 10.0.0.2:1 devices [0] ranks [1] at 10.0.0.2",
		"table-template2.json": "10.0.0.1:2 devices [0 1] ranks [0 1]; 10.0.0.2:2 devices [6 7] ranks [2 3]",
		"table-2.0.json":       "rack0-n1:1 devices [0] ranks [0]; rack0-n2:1 devices [3] ranks [1]",
	} {
		l, err := Read(t.Context(), filepath.Join("testdata", file))
		if got := show(l); err != nil || got != want {
			t.Errorf("%s: %s, %v\nwant %s", file, got, err, want)
		}
		if err := l.Consecutive(); err != nil {
			t.Error(err)
		}
		if strings.Contains(file, "2.0") != (len(l.Notes) > 0) {
			t.Errorf("%s: %q", file, l.Notes)
		}
	}
}

func TestBadTables(t *testing.T) {
	good, err := os.ReadFile("testdata/table-1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"completed"`, `"initializing"`, "still initializing"},
		{`"completed"`, `"failed"`, `its status is "failed"`},
		{`"rank_id": "3"`, `"rank_id": "2"`, "rank 2 appears twice"},
		{`"rank_id": "3"`, `"rank_id": "4"`, "rank 3 is missing"},
		{`"rank_id": "3"`, `"rank_id": "x"`, "not a number"},
		{`, "rank_id": "3"`, ``, "no device_id or no rank_id"},
		{`"device_id": "5"`, `"device_id": "4"`, "device 4 of 10.0.0.1 has two ranks"},
		{`"server_id": "10.0.0.1"`, `"server_id": "-oX"`, "not the name or the address of a host"},
		{`"server_list"`, `"servers"`, "no server_list, no group_list and no rank_list"},
		{`}`, ``, "this is not one"},
	} {
		l, err := Parse([]byte(strings.Replace(string(good), c.from, c.to, 1)), "f")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s instead of %s: %s, error %v, want one with %q", c.to, c.from, show(l), err, c.want)
		}
	}
	mixed := `{"status":"completed","server_list":[{"server_id":"a","device":[{"device_id":0,"rank_id":0},{"device_id":1,"rank_id":2}]},` +
		`{"server_id":"b","device":[{"device_id":0,"rank_id":1}]}]}`
	if l, err := Parse([]byte(mixed), "f"); err != nil || l.Consecutive() == nil {
		t.Errorf("%s, %v", show(l), err)
	}
}

// FuzzParse: whatever a file has, a host that comes out is safe in the arguments of ssh, and reads the same again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"n1 slots=8 max_slots=9\nu@n2:4 # x\n[fe80::1%e]:8\nn1 n1", "# x\n\nn1 port = 22 user=me"} {
		f.Add([]byte(s))
	}
	files, _ := filepath.Glob("testdata/*.json")
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Parse(text, "f")
		if err != nil {
			return
		}
		for _, h := range l.Hosts {
			if h.Name == "" || h.Name[0] == '-' || strings.ContainsAny(h.Name+h.User, " \t\n;$`'\"|&<>()") || h.Slots < 0 || h.Port < 0 {
				t.Fatalf("%q has the host %+v", text, h)
			}
			if h.Ranks != nil && (len(h.Ranks) != h.Slots || len(h.Devices) != h.Slots) {
				t.Fatalf("%q has the host %+v", text, h)
			}
			if h.Slots > maxSlots {
				continue // the sum of several lines
			}
			again, problem := item(h.String())
			if problem != "" || again.Name != h.Name || again.User != h.User || again.Slots != h.Slots {
				t.Fatalf("%+v is written %q, which is read as %+v (%s)", h, h, again, problem)
			}
		}
	})
}
