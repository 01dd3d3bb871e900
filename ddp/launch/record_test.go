package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// read keeps the records of a pipe.
func (k *records) read(r io.Reader) { recordPump(func(rec Record) { k.add(rec, 0) }).run(r) }

func TestReport(t *testing.T) {
	cause := errors.New("no space left")
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, c := range []struct {
		name   string
		err    error
		env    func(pipe *os.File) string
		code   int
		blames []int
		victim bool
	}{
		{"own", WithCode(ExitStorage, cause), nil, ExitStorage, nil, false},
		{"a peer's, wrapped", fmt.Errorf("step 3: %w", WithBlame(cause, 1, 2)), nil, ExitTraining, []int{1, 2}, false},
		{"a peer's, unknown which", fmt.Errorf("step 3: %w", aVictim{cause}), nil, ExitTraining, nil, true},
		{"a peer's that is known after all", WithBlame(aVictim{cause}, 1), nil, ExitTraining, []int{1}, false},
		{"long, not UTF-8, and all escapes", errors.New(strings.Repeat("\x01\xff<", 5000)), nil, ExitTraining, nil, false},
		{"no error", nil, nil, 0, nil, false},
		{"a stop", WithCode(ExitStopped, cause), nil, 0, nil, false},
		{"another pipe by now", cause, func(p *os.File) string { return fmt.Sprintf("%d:1", p.Fd()) }, 0, nil, false},
		{"a file by now", cause, func(*os.File) string { return fmt.Sprintf("%d:1", file.Fd()) }, 0, nil, false},
		{"closed by now", cause, func(*os.File) string { return "999:1" }, 0, nil, false},
		{"no number", cause, func(*os.File) string { return "pipe" }, 0, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			rd, wr, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer rd.Close()
			env, err := recordEnv(wr)
			if err != nil {
				t.Fatal(err)
			}
			value := strings.Replace(strings.TrimPrefix(env, recordVar+"="), "3:", fmt.Sprintf("%d:", wr.Fd()), 1)
			if c.env != nil {
				value = c.env(wr)
			}
			lookup := LookupIn([]string{recordVar + "=" + value})
			report(c.err, lookup)
			report(errors.New("a later one"), lookup)
			wr.Close()
			var k records
			k.read(rd)
			got, _ := k.get()
			if c.code == 0 {
				if got != nil && (c.err != nil && ExitCode(c.err) != ExitStopped || got.Reason != "a later one") {
					t.Errorf("got %+v", got)
				}
				return
			}
			if got == nil || got.Code != c.code || !slices.Equal(got.Blames, c.blames) || got.Victim != c.victim || got.PID != os.Getpid() ||
				!strings.HasPrefix(strings.ToValidUTF8(c.err.Error(), "?"), got.Reason) || len(got.Reason) < min(500, len(c.err.Error())) {
				t.Errorf("got %+v", got)
			}
		})
	}
	if s, _ := os.ReadFile(file.Name()); len(s) > 0 {
		t.Errorf("a file was written to: %q", s)
	}
}

// Other bytes do not hide a record: children of a rank inherit the pipe too.
func TestRecordsAmongOtherBytes(t *testing.T) {
	const good = `{"pid":7,"time":"2026-01-02T03:04:05Z","code":74,"reason":"disk full"}` + "\n"
	for _, noise := range []string{"", "hello\n", "{}\n", strings.Repeat("x", 3*recordMax) + "\n", "\x00\xff{\"pid\":\n", strings.Repeat("\n", 100)} {
		var k records
		k.read(strings.NewReader(noise + good + noise))
		if got, _ := k.get(); got == nil || got.Reason != "disk full" {
			t.Errorf("%.20q: %+v", noise, got)
		}
	}
}

// aVictim is an error that an unknown other rank caused.
type aVictim struct{ error }

func (aVictim) Victim() bool { return true }
