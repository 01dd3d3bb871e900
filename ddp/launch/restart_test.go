package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/internal/transcript"
)

func TestBackOff(t *testing.T) {
	var got []string
	for n := 1; n <= 9; n++ {
		got = append(got, backOff(n).String())
	}
	if s := strings.Join(got, " "); s != "1s 2s 4s 8s 16s 32s 1m0s 1m0s 1m0s" {
		t.Error(s)
	}
}

func TestAgain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {&StoppedError{Code: 75}, false}, {&StoppedError{Code: 130}, false},
		{&Failure{Outcome: Outcome{Code: 64}}, false}, {&Failure{Outcome: Outcome{Code: 66}}, false},
		{&Failure{Outcome: Outcome{Code: 76}}, false}, {&Failure{Outcome: Outcome{Code: 78}}, false},
		{&Failure{Outcome: Outcome{Code: 69}}, true}, {&Failure{Outcome: Outcome{Code: 137, Signal: syscall.SIGKILL}}, true},
		{&Failure{Outcome: Outcome{Code: 1}}, true}, {&Failure{Outcome: Outcome{Code: 124}}, true},
		{WithCode(ExitUnavailable, errors.New("no route")), true},
	} {
		if got := again(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

// restarts runs a script with a budget of restarts.
func restarts(t *testing.T, script string, budget int, refill time.Duration) (starts string, out string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "starts")
	var o transcript.Buffer
	err = Supervise(t.Context(), Job{Argv: []string{"sh", "-c", script}, Ranks: 2, Restarts: budget, Stdout: &o, Stderr: &o, refill: refill, JobID: "j",
		Env: append(os.Environ(), "FILE="+file), backOff: func(int) time.Duration { return time.Millisecond }})
	b, _ := os.ReadFile(file)
	return string(b), o.String(), err
}

func TestRestarts(t *testing.T) {
	const note = `[ $GOTRAIN_RANK = 0 ] || { sleep 60; exit; }; echo "$GOTRAIN_RESTART $GOTRAIN_JOB_ID" >>$FILE; `
	for _, c := range []struct {
		name, script string
		budget       int
		refill       time.Duration
		starts       string
		code         int
	}{
		{"the second start is good", `[ $GOTRAIN_RANK = 0 ] || exit 0; echo "$GOTRAIN_RESTART $GOTRAIN_JOB_ID" >>$FILE; [ $GOTRAIN_RESTART = 1 ] || exit 3`, 2, 0,
			"0 j\n1 j-1\n", 0},
		{"the budget ends", note + "exit 3", 2, 0, "0 j\n1 j-1\n2 j-2\n", 3},
		{"numerics would come back", note + "exit 76", 2, 0, "0 j\n", 76},
		{"a run that lasted refills the budget", note + "[ $GOTRAIN_RESTART = 3 ] && exit 64; sleep 0.02; exit 3", 1, time.Millisecond,
			"0 j\n1 j-1\n2 j-2\n3 j-3\n", 64},
		{"none", note + "exit 3", 0, 0, "0 j\n", 3},
	} {
		starts, out, err := restarts(t, c.script, c.budget, c.refill)
		if starts != c.starts || ExitCode(err) != c.code {
			t.Errorf("%s: starts %q, want %q; %v\n%s", c.name, starts, c.starts, err, out)
		}
	}
}

// A stop request during the pause before a restart ends the job.
func TestStopBeforeARestart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var o transcript.Buffer
	go func() { o.WaitFor(t, "restart 1 of 5", 1); cancel() }()
	err := Supervise(ctx, Job{Argv: []string{"false"}, Ranks: 1, Restarts: 5, Stdout: &o, Stderr: &o, backOff: func(int) time.Duration { return time.Minute }})
	var s *StoppedError
	if !errors.As(err, &s) || s.Signal != syscall.SIGTERM {
		t.Errorf("%v\n%s", err, o.String())
	}
}

// Ranks that ended alike share a line of the report.
func TestReportOfManyRanks(t *testing.T) {
	f := &Failure{Outcome: Outcome{Rank: 5, Host: "n2", Code: 69, Lost: "ssh was killed", After: time.Second}}
	for rank := range 8 {
		switch {
		case rank < 4:
			f.Rest = append(f.Rest, Outcome{Rank: rank, Code: 69, After: 2 * time.Second})
		case rank != 5:
			f.Rest = append(f.Rest, Outcome{Rank: rank, Host: "n2", Code: 69, Lost: "ssh was killed", After: time.Second})
		}
	}
	want := "launch: ranks 0-3 then ended with exit code 69 (unavailable)\nlaunch: ranks 4, 6-7 then ended because host n2 was lost\n" +
		"launch: host n2 was lost first, with rank 5 (1.0s after start): ssh was killed"
	if got := f.Error(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if f.ExitCode() != ExitUnavailable {
		t.Error(f.ExitCode())
	}
}

// A lost host is the cause, although ranks elsewhere were heard of first.
func TestLostHostIsFirst(t *testing.T) {
	victim := Outcome{Rank: 0, Code: 69, After: time.Second, Record: &Record{Code: 69, Blames: []int{1}}, recorded: time.Second}
	lost := Outcome{Rank: 1, Host: "n2", Code: 69, Lost: "silence", After: 9 * time.Second}
	f, by, failed := first([]Outcome{victim, lost})
	if !failed || f.Rank != 1 || by != nil {
		t.Errorf("%+v %v", f, by)
	}
}

// The output of a rank is kept in files, whole, without prefix and without the token; a folder that cannot be made is an error.
func TestLogs(t *testing.T) {
	dir := t.TempDir()
	var o transcript.Buffer
	j := Job{Argv: []string{"sh", "-c", "echo rank $GOTRAIN_RANK $GOTRAIN_JOB_TOKEN; echo bad >&2"}, Ranks: 2, Logs: dir, Token: "0123456789abcdef",
		Stdout: &o, Stderr: &o}
	for range 2 {
		if err := Supervise(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	for rank := range 2 {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("rank.%d/stdout", rank)))
		if want := strings.Repeat(fmt.Sprintf("rank %d [token]\n", rank), 2); string(b) != want {
			t.Errorf("%q %v", b, err)
		}
	}
	if strings.Contains(o.String(), j.Token) {
		t.Error(o.String())
	}
	j.Logs = filepath.Join(dir, "rank.0/stdout")
	if err := Supervise(t.Context(), j); ExitCode(err) != ExitStorage {
		t.Error(err)
	}
}

// One supervisor may have the ranks of one machine only.
func TestPartOfAJob(t *testing.T) {
	var o transcript.Buffer
	j := Job{Argv: []string{os.Args[0]}, Env: append(os.Environ(), "GOTRAIN_TEST_ROLE=whoami", "GOTRAIN_MASTER_ADDR=n1", "GOTRAIN_MASTER_PORT=29500"),
		Ranks: 2, World: 4, First: 2, NodeRank: 1, Nodes: 2, JobID: "j", Stdout: &o, Stderr: &o}
	if err := Supervise(t.Context(), j); err != nil || !strings.Contains(o.String(), "[rank 3] rank 3 of 4 (local 1 of 2, node 1 of 2) from gotrain, job j") ||
		!strings.Contains(o.String(), "[rank 2] rank 2 of 4") {
		t.Errorf("%v\n%s", err, o.String())
	}
	for _, bad := range []Job{{World: 3, First: 2, Nodes: 2, NodeRank: 1}, {World: 4, First: -1, Nodes: 2}, {World: 4, First: 2, Nodes: 2, NodeRank: 2}} {
		bad.Argv, bad.Ranks = []string{"true"}, 2
		if err := Supervise(t.Context(), bad); ExitCode(err) != ExitUsage {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
