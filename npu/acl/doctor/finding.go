package doctor

import (
	"fmt"
	"slices"
)

// Severity says how bad a finding is.
type Severity int

// The severities, in order.
const (
	OK Severity = iota
	Note
	Warning
	Error
)

var severities = []string{"ok", "note", "warning", "error"}

// String returns the word in reports.
func (s Severity) String() string { return severities[s] }

// MarshalText writes the word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word.
func (s *Severity) UnmarshalText(b []byte) error {
	i := slices.Index(severities, string(b))
	if i < 0 {
		return fmt.Errorf("doctor: severity %q", b)
	}
	*s = Severity(i)
	return nil
}

// Finding is one thing that was found.
type Finding struct {
	Group    string   `json:"group"`
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Where    string   `json:"where,omitempty"`  // file, command or variable
	Remedy   string   `json:"remedy,omitempty"` // what to do
}

// Report is what was found.
type Report struct {
	Program  string    `json:"program"` // version and platform of gotrain
	Summary  string    `json:"summary"`
	NPUs     int       `json:"npus"` // device files, or devices that CANN reports
	SoC      string    `json:"soc,omitempty"`
	CANN     string    `json:"cann,omitempty"`
	Toolkit  string    `json:"toolkit,omitempty"` // the folder of CANN
	Findings []Finding `json:"findings"`
	Kernels  Section   `json:"kernels,omitempty"` // of --device
	ABI      Section   `json:"abi,omitempty"`     // of --abi
}

// Section is a part of a report that has a form of its own.
type Section interface {
	Text() string
	OK() bool
}

// sections are those that the report has.
func (r *Report) sections() []Section {
	return slices.DeleteFunc([]Section{r.Kernels, r.ABI}, func(s Section) bool { return s == nil })
}

// Count is the number of findings of a severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// ExitCode is 0; 70 if a section is not right, which is a defect to report; or 69 if there are errors: devices are not usable.
func (r *Report) ExitCode() int {
	for _, s := range r.sections() {
		if !s.OK() {
			return 70
		}
	}
	if r.Count(Error) > 0 {
		return 69
	}
	return 0
}
