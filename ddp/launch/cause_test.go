package launch

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFirst(t *testing.T) {
	const s = time.Second
	said := func(o Outcome, at time.Duration, reason string, blames ...int) Outcome {
		o.Record, o.recorded = &Record{Code: o.Code, Reason: reason, Blames: blames}, at
		return o
	}
	victim := func(o Outcome, at time.Duration, reason string) Outcome {
		o.Record, o.recorded = &Record{Code: o.Code, Reason: reason, Victim: true}, at
		return o
	}
	killed := func(rank int, at time.Duration) Outcome {
		return Outcome{Rank: rank, Code: 137, Signal: syscall.SIGKILL, ByUs: true, After: at}
	}
	for _, c := range []struct {
		name string
		outs []Outcome
		rank int
		code int
		text string // in the report
	}{
		{"by time of the end", []Outcome{{Rank: 0, Code: 1, After: 2 * s}, {Rank: 1, Code: 2, After: s}}, 1, 2, "rank 1 failed first: exit code 2 ("},
		{"by the record, against the order of the ends", []Outcome{
			said(Outcome{Rank: 0, Code: 74, After: 3 * s}, 2*s, "disk full"), said(Outcome{Rank: 1, Code: 74, After: 2 * s}, 2*s, "rank 0 could not", 0),
		}, 0, 74, "rank 0 failed first: exit code 74 (storage) (host , pid 0, 2.0s after start): disk full"},
		{"two that fail by themselves: by time of the records", []Outcome{
			said(Outcome{Rank: 0, Code: 1, After: 2 * s}, 2*s, "b"), said(Outcome{Rank: 1, Code: 1, After: 3 * s}, s, "a"),
		}, 1, 1, ": a"},
		{"a rank that hung", []Outcome{
			said(Outcome{Rank: 1, Code: 124, After: 2 * s}, 2*s, "waiting for ranks [0]", 0), killed(0, 5*s),
		}, 0, 124, "rank 0 failed first: it hung, according to rank 1 (host , pid 0, 5.0s after start): waiting for ranks [0]"},
		{"a rank that hung in a hung job: who others name counts, not who was ended", []Outcome{
			killed(2, 5*s), said(Outcome{Rank: 1, Code: 124, After: 2 * s}, 2*s, "waiting for ranks [0]", 0), killed(0, 6*s),
		}, 0, 124, "it hung, according to rank 1"},
		{"all blame each other", []Outcome{
			said(Outcome{Rank: 0, Code: 124, After: 2 * s}, 2*s, "x", 1), said(Outcome{Rank: 1, Code: 124, After: s}, s, "y", 0),
		}, 1, 124, "rank 1 failed first: exit code 124 (timeout)"},
		{"a rank died without a word", []Outcome{
			said(Outcome{Rank: 0, Code: 69, After: s}, s, "rank 1 is gone", 1), {Rank: 1, Code: 139, Signal: syscall.SIGSEGV, After: 2 * s},
		}, 1, 139, "rank 1 failed first: killed by SIGSEGV"},
		{"a blamed rank that was done", []Outcome{
			said(Outcome{Rank: 0, Code: 69, After: s}, s, "rank 1 closed its communicator", 1), {Rank: 1, Code: 0, After: s},
		}, 0, 69, "closed its communicator"},
		{"a rank that failed and then hung", []Outcome{
			said(killed(0, 9*s), s, "the data are gone"), said(Outcome{Rank: 1, Code: 69, After: 2 * s}, 2*s, "rank 0 is gone", 0),
		}, 0, 137, "but did not exit by itself (host , pid 0, 1.0s after start): the data are gone"},
		{"a victim that does not know of whom, before the culprit could say it", []Outcome{
			victim(Outcome{Rank: 0, Code: 124, After: s}, s, "some rank did not come"), said(Outcome{Rank: 1, Code: 74, After: 3 * s}, 2*s, "the disk is full"),
		}, 1, 74, "the disk is full"},
		{"victims only", []Outcome{
			victim(Outcome{Rank: 1, Code: 124, After: s}, s, "some rank did not come"), killed(0, 5*s),
		}, 1, 124, "some rank did not come"},
		{"blaming oneself is no blame", []Outcome{
			said(Outcome{Rank: 1, Code: 76, After: 2 * s}, 2*s, "NaN here", 1), said(Outcome{Rank: 0, Code: 76, After: s}, s, "NaN there", 1),
		}, 1, 76, "NaN here"},
	} {
		f, by, failed := first(c.outs)
		fail := &Failure{Outcome: f, By: by}
		if !failed || f.Rank != c.rank || fail.ExitCode() != c.code || !strings.Contains(fail.Error(), c.text) {
			t.Errorf("%s: rank %d, code %d\n%v", c.name, f.Rank, fail.ExitCode(), fail)
		}
	}
	if _, _, failed := first([]Outcome{{Code: 0}, {Code: 75}}); failed {
		t.Error("nobody failed")
	}
}

// Ranks of different hosts that were alive and gave each other up: the network failed. On one host, or after a time-out, one of them did.
func TestApart(t *testing.T) {
	rank := func(rank int, host string, code int, blames ...int) Outcome {
		return Outcome{Rank: rank, Host: host, Code: code, After: time.Second, Record: &Record{Reason: "gone", Blames: blames, Victim: len(blames) == 0}}
	}
	for _, c := range []struct {
		name string
		outs []Outcome
		want bool
	}{
		{"each other", []Outcome{rank(0, "a", 69, 1), rank(1, "b", 69, 0)}, true},
		{"one was told that it is the other", []Outcome{rank(1, "b", 69), rank(0, "a", 69, 1)}, true},
		{"one host", []Outcome{rank(0, "a", 69, 1), rank(1, "a", 69, 0)}, false},
		{"late for each other", []Outcome{rank(0, "a", 124, 1), rank(1, "b", 124, 0)}, false},
		{"one failed by itself", []Outcome{rank(0, "a", 69, 1), rank(1, "b", 74, 1)}, false},
		{"one was killed", []Outcome{rank(0, "a", 69, 1), {Rank: 1, Host: "b", Code: 137, Signal: syscall.SIGKILL}}, false},
		{"both lost a third", []Outcome{rank(0, "a", 69, 2), rank(1, "b", 69, 2)}, false},
	} {
		f, by, _ := first(c.outs)
		fail := &Failure{Outcome: f, By: by, Apart: apart(f, c.outs)}
		if text := fail.Error(); (fail.Apart != nil) != c.want || strings.Contains(text, "lost each other") != c.want {
			t.Errorf("%s: %s", c.name, text)
		} else if c.want && (fail.ExitCode() != ExitUnavailable || !strings.Contains(text, "hosts "+f.Host+" and ") || !strings.Contains(text, "\nhint: ")) {
			t.Errorf("%s: code %d\n%s", c.name, fail.ExitCode(), text)
		}
	}
}
