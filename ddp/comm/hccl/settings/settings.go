package settings

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Input is what settings are made of.
type Input struct {
	Env     map[string]string // of the process
	Options map[string]string // of the run; keys that do not concern HCCL are ignored
	Ranks   int
	SoC     string // "A2" or "A3"; "" if unknown
	// LongWork is how long gotrain may wait for a rank. HCCL's own timeout must not end earlier, because its error names no rank; 0 if unknown.
	LongWork time.Duration
	// Address is that at which other hosts reach this one; the zero value if all ranks are on one host. HCCL itself takes the first interface it finds.
	Address netip.Addr
}

// Options of a run.
const (
	OptionBuffer        = "hccl_buffer_mb"   // MB of each of the communicator's two buffers
	OptionExpansion     = "hccl_expansion"   // host, ai_cpu or aiv
	OptionCheck         = "hccl_check"       // before: compare every call between ranks before HCCL sees it; behind (default): while it runs
	OptionDeterministic = "deterministic"    // true (default) or false
	optionPrefix        = "hccl_"            // an unknown option of this kind is an error
	defaultConnect      = 10 * time.Minute   // ranks compile and load at different speeds
	defaultExec         = 1836 * time.Second // of HCCL
	execMargin          = time.Minute        // gotrain's deadline, whose error names ranks, comes first
	mib                 = int64(1) << 20     //
	maxTimeout          = 365 * 24 * 60 * 60 // seconds
)

// Settings are what HCCL gets.
type Settings struct {
	Config  Config
	Setenv  []Var         // to set before the first call of HCCL, in order of name
	Timeout time.Duration // how long a call may wait for a silent rank, by HCCL_TIMEOUT; 0 = not set
	Before  bool          // compare calls between ranks before HCCL sees them
	Lines   []Line        // for people
}

// Var is a variable.
type Var struct{ Name, Value string }

// Line says what one setting became, and by whom.
type Line struct {
	What, Value, By string
	Own             bool // of this host: the other hosts have another value
}

// Problem is one thing that is wrong.
type Problem struct {
	Subject string // "HCCL_TOPOLOGY=star"
	Text    string
	Hint    string
}

func (p *Problem) Error() string {
	s := "hccl: " + p.Subject + ": " + p.Text
	if p.Hint != "" {
		s += "\nhint: " + p.Hint
	}
	return s
}

// ExitCode is the exit code of a program that ends because of the problem, as ddp/launch documents it: that of a wrong environment, or of a wrong recipe.
func (p *Problem) ExitCode() int {
	if strings.HasPrefix(p.Subject, "HCCL_") {
		return 64
	}
	return 78
}

// reader collects lines and problems.
type reader struct {
	Input
	out      Settings
	problems []error
}

// Read makes settings. Its error joins everything that is wrong, each as a *Problem.
func Read(in Input) (*Settings, error) {
	r := &reader{Input: in}
	r.known()
	r.contradictions()
	r.buffer()
	r.topology()
	r.compress()
	r.timeouts()
	r.deterministic()
	r.expansion()
	r.ports()
	r.address()
	r.options()
	r.rest()
	if len(r.problems) > 0 {
		return nil, errors.Join(r.problems...)
	}
	slices.SortFunc(r.out.Setenv, func(a, b Var) int { return strings.Compare(a.Name, b.Name) })
	return &r.out, nil
}

// String is the block that a run prints at its start.
func (s *Settings) String() string {
	var b strings.Builder
	b.WriteString("settings of HCCL, the same on all ranks:")
	what, value := 0, 0
	for _, l := range s.Lines {
		what, value = max(what, len(l.What)), max(value, len(l.Value))
	}
	for _, l := range s.Lines {
		fmt.Fprintf(&b, "\n  %-*s  %-*s  %s", what, l.What, value, l.Value, l.By)
		if l.Own {
			b.WriteString("; each host has its own")
		}
	}
	return b.String()
}

const (
	byDefault = "by default of gotrain"
	byHCCL    = "left to HCCL"
)

func env(name, value string) string      { return fmt.Sprintf("environment: %s=%s", name, value) }
func recipe(key, value string) string    { return fmt.Sprintf("recipe: %s = %s", key, value) }
func seconds(d time.Duration) string     { return strconv.FormatInt(int64(d/time.Second), 10) }
func (r *reader) set(name, value string) { r.out.Setenv = append(r.out.Setenv, Var{name, value}) }

func (r *reader) line(what, value, by string) {
	r.out.Lines = append(r.out.Lines, Line{what, shown(value), shown(by), slices.Contains(own, what)})
}

// shown is text as it may go to a terminal.
func shown(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

func (r *reader) wrong(name, value, text, hint string) {
	r.problems = append(r.problems, &Problem{shown(name + "=" + value), text, hint})
}

// known checks the range of each variable of HCCL.
func (r *reader) known() {
	for _, v := range variables {
		value, ok := r.Env[v.name]
		if !ok || v.check == nil {
			continue
		}
		if err := v.check(value); err != nil {
			hint := "correct or unset it"
			if v.name == "HCCL_DETERMINISTIC" {
				hint = "HCCL reads words here: true or false"
			}
			r.wrong(v.name, value, err.Error(), hint)
		}
	}
}

// contradictions finds variables of HCCL that exclude each other.
func (r *reader) contradictions() {
	if r.Env["HCCL_INTRA_ROCE_ENABLE"] == "1" && r.Env["HCCL_INTRA_PCIE_ENABLE"] == "1" {
		r.wrong("HCCL_INTRA_ROCE_ENABLE", "1", "HCCL_INTRA_PCIE_ENABLE is 1 as well; only one of them may be", "unset both: HCCL chooses the links within a machine")
	}
	if r.Env["HCCL_WHITELIST_DISABLE"] == "0" && r.Env["HCCL_WHITELIST_FILE"] == "" {
		r.wrong("HCCL_WHITELIST_DISABLE", "0", "HCCL_WHITELIST_FILE does not say which addresses are allowed", "set it to the path of the list, or unset both")
	}
	mode, strict := r.Env["HCCL_OP_EXPANSION_MODE"], r.Env["HCCL_DETERMINISTIC"] == "strict"
	if strict && r.Ranks < 3 {
		r.wrong("HCCL_DETERMINISTIC", "strict", fmt.Sprintf("strict needs at least 3 ranks, these are %d", r.Ranks), "use true")
	}
	if v, ok := r.Env["HCCL_EXEC_TIMEOUT"]; ok && mode == "AIV" {
		if f, err := strconv.ParseFloat(v, 64); err == nil && f > 1091 {
			r.wrong("HCCL_EXEC_TIMEOUT", v, "with HCCL_OP_EXPANSION_MODE=AIV at most 1091 is allowed", "unset one of them")
		}
	}
	allowed := map[string][]string{"A2": {"HOST", "HOST_TS", "AI_CPU", "AIV"}, "A3": {"AI_CPU", "AIV"}}[r.SoC]
	if v, _ := find("HCCL_OP_EXPANSION_MODE"); mode != "" && allowed != nil && v.check(mode) == nil && !slices.Contains(allowed, mode) {
		r.wrong("HCCL_OP_EXPANSION_MODE", mode, fmt.Sprintf("%s devices have %s", r.SoC, strings.Join(allowed, ", ")), "unset it")
	}
	if r.Env["HCCL_IF_BASE_PORT"] != "" && r.Env["HCCL_HOST_SOCKET_PORT_RANGE"] != "" {
		r.wrong("HCCL_IF_BASE_PORT", r.Env["HCCL_IF_BASE_PORT"], "HCCL_HOST_SOCKET_PORT_RANGE is set too, and HCCL would ignore this one", "unset one of them")
	}
}

// rest mentions what is passed on.
func (r *reader) rest() {
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		value := r.Env[name]
		_, ours := find(name)
		switch {
		case !strings.HasPrefix(name, "HCCL_") || slices.Contains(articles, name) || slices.ContainsFunc(r.out.Lines, func(l Line) bool { return l.What == name }):
		case ours:
			r.line(name, value, "environment")
		case slices.Contains(foreign, name):
			r.line(name, value, "environment; only torch_npu reads it: no effect")
		default:
			r.line(name, value, "environment; unknown to gotrain, passed on to HCCL")
		}
	}
}

// options finds misspelt options.
func (r *reader) options() {
	for _, key := range slices.Sorted(maps.Keys(r.Options)) {
		value := r.Options[key]
		switch {
		case key == OptionCheck:
			if err := words("before", "behind")(value); err != nil {
				r.wrong(key, value, err.Error(), "before compares calls before HCCL sees them, which is slower; behind while they run")
			}
			r.out.Before = value == "before"
			r.line("calls compared", value, recipe(key, value))
		case slices.Contains([]string{OptionBuffer, OptionExpansion}, key) || !strings.HasPrefix(key, optionPrefix):
		default:
			r.wrong(key, value, "there is no such option", fmt.Sprintf("options are %s, %s and %s", OptionBuffer, OptionExpansion, OptionCheck))
		}
	}
}
