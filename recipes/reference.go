package recipes

import (
	"fmt"
	"strings"
)

// Reference is the documentation of all keys as Markdown: docs/recipes.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Recipe reference

<!-- Printed by "go generate ./recipes" from the schema in recipes/schema.go: change it there. -->

A recipe is a TOML file. Every key is optional but the length of the run; a key that does not exist is an error. Change single keys on
the command line with ` + "`--set section.key=value`" + `, see everything filled in with ` + "`gotrain validate --resolved RECIPE`" + `, and read how paths are
found in the [package documentation](../recipes/doc.go).
`)
	for _, s := range schema {
		fmt.Fprintf(&b, "\n## [%s]\n\n%s\n\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n", s.name, s.doc)
		for _, f := range s.fields {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, f.typeCell(), f.defaultCell(), strings.ReplaceAll(f.doc, "|", `\|`))
		}
	}
	return b.String()
}

func (f *field) typeCell() string {
	s := f.typeName()
	if f.oneOf != nil {
		s = "`" + strings.Join(f.oneOf, "`, `") + "`"
	}
	if f.unit != "" {
		s += " (" + f.unit + ")"
	}
	var limits []string
	if f.over != nil {
		limits = append(limits, fmt.Sprintf("> %g", *f.over))
	}
	// At least 0 goes without saying.
	if f.min != nil && *f.min != 0 {
		limits = append(limits, fmt.Sprintf(">= %g", *f.min))
	}
	if f.max != nil && *f.max < 1e9 {
		limits = append(limits, fmt.Sprintf("<= %g", *f.max))
	}
	if limits != nil {
		s += ", " + strings.Join(limits, ", ")
	}
	return s
}

func (f *field) defaultCell() string {
	switch {
	case f.auto != "":
		return "auto: " + f.auto
	case f.def == "":
		return "empty"
	}
	return "`" + f.def + "`"
}
