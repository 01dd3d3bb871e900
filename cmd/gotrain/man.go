package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gotrain/gotrain/ddp/launch"
)

// writeMan writes a manual page per verb to a folder, from the same tables as --help: gotrain.1, gotrain-run.1, …
func writeMan(root *cobra.Command, dir string) (int, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, launch.WithCode(launch.ExitStorage, err)
	}
	n := 0
	var walk func(c *cobra.Command) error
	walk = func(c *cobra.Command) error {
		if c.Hidden || c.IsAdditionalHelpTopicCommand() || c.Name() == "help" {
			return nil
		}
		if err := os.WriteFile(filepath.Join(dir, manName(c)+".1"), []byte(manPage(c)), 0o644); err != nil {
			return launch.WithCode(launch.ExitStorage, err)
		}
		n++
		for _, sub := range c.Commands() {
			if err := walk(sub); err != nil {
				return err
			}
		}
		return nil
	}
	return n, walk(root)
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage returns the page of one verb in roff.
func manPage(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	var b strings.Builder
	fmt.Fprintf(&b, ".TH \"%s\" 1 \"\" \"gotrain\" \"gotrain manual\"\n", strings.ToUpper(manName(c)))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(c)), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(c.UseLine()))
	long, codes, _ := strings.Cut(c.Long, exitHelp)
	if long == "" {
		long = c.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n")
	for i, p := range strings.Split(strings.TrimSpace(long), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		b.WriteString(roff(p) + "\n")
	}
	manFlags(&b, "OPTIONS", c.NonInheritedFlags())
	manFlags(&b, "OPTIONS OF ALL VERBS", c.InheritedFlags())
	if codes != "" {
		verbatim(&b, "EXIT STATUS", codes)
	}
	if c.Example != "" {
		verbatim(&b, "EXAMPLES", c.Example)
	}
	var others []string
	if c.HasParent() {
		others = append(others, manName(c.Parent())+"(1)")
	}
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			others = append(others, manName(sub)+"(1)")
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", roff(strings.Join(others, ", ")))
	}
	return b.String()
}

func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		what, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR", roff(name))
		if what != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(what))
		}
		fmt.Fprintf(b, "\n%s\n", roff(usage))
		if d := f.DefValue; d != "" && d != "0" && d != "false" && d != "[]" {
			fmt.Fprintf(b, "(default: %s)\n", roff(d))
		}
	})
}

// verbatim writes a section whose lines are not filled.
func verbatim(b *strings.Builder, title, text string) {
	fmt.Fprintf(b, ".SH %s\n.nf\n%s\n.fi\n", title, roff(strings.Trim(text, "\n")))
}

// roff escapes text for roff.
func roff(s string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
