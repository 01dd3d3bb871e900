package launch

import (
	"strings"
	"testing"
)

// The report ends with the reason. Where the rank's output ends with it too, it is not shown a second time.
func TestReportHasTheReasonOnce(t *testing.T) {
	const reason = "train: rank 0 step 3: no such thing\nhint: look elsewhere"
	for _, c := range []struct {
		name  string
		tail  []string
		rec   *Record
		lines string // of output in the report
	}{
		{"both", []string{"Step 2/9", "gotrain: train: rank 0 step 3: no such thing", "hint: look elsewhere"}, &Record{Code: 1, Reason: reason}, "Step 2/9"},
		{"only the message", []string{"gotrain: train: rank 0 step 3: no such thing", "hint: look elsewhere"}, &Record{Code: 1, Reason: reason + "\n"}, ""},
		{"more output after it", []string{"gotrain: train: rank 0 step 3: no such thing", "hint: look elsewhere", "bye"}, &Record{Code: 1, Reason: reason},
			"gotrain: train: rank 0 step 3: no such thing|hint: look elsewhere|bye"},
		{"another message", []string{"Step 2/9", "panic: ouch"}, &Record{Code: 1, Reason: reason}, "Step 2/9|panic: ouch"},
		{"shorter than the reason", []string{"hint: look elsewhere"}, &Record{Code: 1, Reason: reason}, "hint: look elsewhere"},
		{"no record", []string{"Step 2/9", "boom"}, nil, "Step 2/9|boom"},
	} {
		text := (&Failure{Outcome: Outcome{Code: 1, Record: c.rec, Host: "here"}, Tail: c.tail}).Error()
		var lines []string
		for l := range strings.Lines(text) {
			if l, ok := strings.CutPrefix(l, "  | "); ok {
				lines = append(lines, strings.TrimSpace(l))
			}
		}
		if got := strings.Join(lines, "|"); got != c.lines || strings.Contains(text, "last lines") != (c.lines != "") {
			t.Errorf("%s: the report shows %q, want %q:\n%s", c.name, got, c.lines, text)
		}
		if want := "no such thing\nhint: look elsewhere"; c.rec != nil && !strings.Contains(text, want) {
			t.Errorf("%s: no reason in\n%s", c.name, text)
		}
	}
}

func TestStoppedWithTheCodeOfTheLowestRank(t *testing.T) {
	out := func(rank, code int) Outcome { return Outcome{Rank: rank, Code: code} }
	for _, c := range []struct {
		ended []Outcome
		want  int
	}{
		{nil, ExitOK},
		{[]Outcome{out(1, ExitOK), out(0, ExitOK)}, ExitOK},
		{[]Outcome{out(2, ExitNotResumable), out(0, ExitStopped), out(1, ExitNotResumable)}, ExitStopped},
		{[]Outcome{out(1, ExitStopped), out(0, ExitOK)}, ExitStopped},
		{[]Outcome{out(1, ExitStopped), out(0, ExitNotResumable)}, ExitNotResumable},
	} {
		if got := stoppedWith(c.ended); got != c.want {
			t.Errorf("%v: %d, want %d", c.ended, got, c.want)
		}
	}
}
