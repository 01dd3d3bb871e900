package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// Lacking is the error of a plan with calls that the target has no kernel for.
type Lacking struct {
	Ops []string // kind{attributes} of "the first name in the model", each kind (and function) once
}

func (l *Lacking) Error() string {
	return fmt.Sprintf("no kernel for %s\nhint: use a device that has them (ref has every registered kind, and cpu too), or build the model without them",
		strings.Join(l.Ops, ", "))
}

// lacking looks for calls that the target cannot execute. Reshapes and conversions are made by the layouter, where they are more than aliases.
func lacking(g *Graph, t Target) error {
	seen := map[string]bool{}
	var l Lacking
	for _, c := range g.Calls {
		if c.Host != nil || c.Kind == npu.Reshape || c.Kind == npu.Convert || t.Has(c.Kind, c.Attrs) {
			continue
		}
		if op := c.Kind + " " + c.Attrs.Str("fn"); !seen[op] {
			seen[op] = true
			l.Ops = append(l.Ops, fmt.Sprintf("%s{%s} of %q", c.Kind, c.Attrs, c.Name))
		}
	}
	if len(l.Ops) == 0 {
		return nil
	}
	slices.Sort(l.Ops)
	return &l
}
