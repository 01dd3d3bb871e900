package recipes

import (
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
)

// Problem is one error in a recipe.
type Problem struct {
	File string // path of the file, or "--set" for an override
	Line int    // 0: not tied to a line
	Key  string // "optim.lr"; "" for the file as a whole
	Msg  string
	Hint string

	meant string // the key that the hint suggests; it is then not also reported as missing
}

// String returns "file:line: key: message (hint)".
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Msg)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Errors holds all problems of a recipe, in the order of the file.
type Errors []Problem

// Error returns one line for each problem.
func (e Errors) Error() string {
	lines := make([]string, 0, len(e)+1)
	for _, p := range e {
		lines = append(lines, p.String())
	}
	if len(e) > 1 {
		lines = append(lines, fmt.Sprintf("recipes: %d problems", len(e)))
	}
	return strings.Join(lines, "\n")
}

// ExitCode returns 78.
func (e Errors) ExitCode() int { return launch.ExitRecipe }
