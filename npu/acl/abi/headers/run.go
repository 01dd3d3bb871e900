package headers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/npu/acl/abi"
)

// Options of a comparison.
type Options struct {
	Roots    []string // folders for #include; headers are looked for in them and below
	Compiler string   // "": Compiler's
	Tables   []Table  // nil: Tables'
}

// Table is a table to compare.
type Table struct {
	Name      string
	Functions []abi.Function
}

// Tables are those of package abi.
func Tables() []Table {
	return []Table{{"runtime", abi.Runtime()}, {"operator base", abi.Base()}, {"HCCL", abi.HCCL()}, {"operators", Phases(abi.Ops())}}
}

// Row is the outcome for a table.
type Row struct {
	Table  string   `json:"table"`
	Equal  int      `json:"equal"`
	Absent []string `json:"absent,omitempty"` // no header declares them
	Differ []string `json:"differ,omitempty"`
	Error  string   `json:"error,omitempty"` // the headers do not compile
}

// Result is the outcome.
type Result struct {
	Roots    []string `json:"roots"`
	Compiler string   `json:"compiler"`
	Rows     []Row    `json:"rows"`
	Skipped  string   `json:"skipped,omitempty"` // why nothing was compared
}

// OK reports whether nothing differs.
func (r *Result) OK() bool {
	return !slices.ContainsFunc(r.Rows, func(row Row) bool { return len(row.Differ) > 0 || row.Error != "" })
}

// Text is the result for people.
func (r *Result) Text() string {
	var b strings.Builder
	if r.Skipped != "" {
		return "tables of C functions: not compared: " + strings.ReplaceAll(r.Skipped, "\n", "; ") + "\n"
	}
	fmt.Fprintf(&b, "tables of C functions against the headers in %s, by %s\n", strings.Join(r.Roots, ", "), r.Compiler)
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "  %-22s  %d equal", row.Table, row.Equal)
		if len(row.Absent) > 0 {
			fmt.Fprintf(&b, "; not declared: %s", short(row.Absent))
		}
		if len(row.Differ) > 0 {
			fmt.Fprintf(&b, "; DIFFERENT: %s", strings.Join(row.Differ, ", "))
		}
		if row.Error != "" {
			fmt.Fprintf(&b, "; the headers do not compile: %s", row.Error)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// short names some of a list.
func short(l []string) string {
	if len(l) > 24 {
		return fmt.Sprintf("%d, such as %s", len(l), strings.Join(l[:4], ", "))
	}
	return strings.Join(l, ", ")
}

// Run compares. A machine without compiler or headers gives a Result with Skipped.
func Run(ctx context.Context, o Options) (*Result, error) {
	r := &Result{Roots: o.Roots, Compiler: o.Compiler}
	if len(o.Roots) == 0 {
		r.Skipped = "no headers of CANN are installed"
		return r, nil
	}
	if o.Compiler == "" {
		var err error
		if o.Compiler, err = Compiler(); err != nil {
			r.Skipped = err.Error()
			return r, nil
		}
		r.Compiler = o.Compiler
	}
	if o.Tables == nil {
		o.Tables = Tables()
	}
	at, err := index(o.Roots)
	if err != nil {
		return nil, err
	}
	c := &comparison{ctx: ctx, o: o, at: at}
	for _, t := range o.Tables {
		row, err := c.table(t)
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, row)
	}
	runtime, hccl := Values()
	for _, v := range []struct {
		name   string
		values []Value
		needs  string
	}{{"numbers of the runtime", runtime, "aclrtMalloc"}, {"layouts of HCCL", hccl, "HcclAllReduce"}} {
		row, err := c.values(v.name, v.values, v.needs)
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

// comparison is a run under way.
type comparison struct {
	ctx context.Context
	o   Options
	at  map[string]string // function → header
}

func (c *comparison) table(t Table) (Row, error) {
	row := Row{Table: t.Name}
	var have []abi.Function
	var include []string
	for _, f := range t.Functions {
		file, ok := c.at[f.Name]
		if !ok {
			row.Absent = append(row.Absent, f.Name)
			continue
		}
		for _, h := range []string{umbrella(c.o.Roots, f.Name), file} {
			if h != "" && !slices.Contains(include, h) {
				include = append(include, h)
			}
		}
		have = append(have, f)
	}
	for len(have) > 0 {
		text, err := Source(include, have)
		if err != nil {
			return row, err
		}
		f, err := c.compile(text)
		if err != nil {
			return row, err
		}
		n := len(have)
		have = slices.DeleteFunc(have, func(fn abi.Function) bool { return slices.Contains(f.absent, fn.Name) }) // in a comment or a macro only
		if len(have) == n {
			row.Differ, row.Error, row.Equal = f.differ, f.other, n-len(f.differ)
			if f.other != "" {
				row.Equal = 0
			}
			break
		}
		row.Absent = append(row.Absent, f.absent...)
	}
	return row, nil
}

func (c *comparison) values(name string, values []Value, needs string) (Row, error) {
	row := Row{Table: name}
	file, ok := c.at[needs]
	if !ok {
		for _, v := range values {
			row.Absent = append(row.Absent, v.Expression)
		}
		return row, nil
	}
	include := []string{file}
	if h := umbrella(c.o.Roots, needs); h != "" {
		include = []string{h}
	}
	for {
		f, err := c.compile(ValueSource(include, values))
		if err != nil {
			return row, err
		}
		n := len(values)
		values = slices.DeleteFunc(values, func(v Value) bool {
			return slices.ContainsFunc(f.absent, func(name string) bool { return regexp.MustCompile(`\b` + name + `\b`).MatchString(v.Expression) })
		})
		if len(values) == n {
			row.Differ, row.Error, row.Equal = f.differ, f.other, n-len(f.differ)
			return row, nil
		}
		row.Absent = append(row.Absent, f.absent...)
	}
}

// findings are what the compiler said.
type findings struct {
	differ, absent []string
	other          string // the first error of another kind
}

var (
	differs  = regexp.MustCompile(`(?:signature|value) of \(?(.+?)\)? differs`)
	unknown  = regexp.MustCompile(`error: .?([A-Za-z_]\w*).*? (?:was not declared|has not been declared)|undeclared identifier .(\w+)|no member named .(\w+)`)
	anyError = regexp.MustCompile(`(?m)^.*error: (.*)$`)
)

// compile runs the compiler on a text.
func (c *comparison) compile(text string) (findings, error) {
	dir, err := os.MkdirTemp("", "gotrain-abi-")
	if err != nil {
		return findings{}, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "check.cc")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return findings{}, err
	}
	args := []string{"-std=c++17", "-fsyntax-only", "-w"}
	for _, r := range c.o.Roots {
		args = append(args, "-I"+r)
	}
	cmd := exec.CommandContext(c.ctx, c.o.Compiler, append(args, file)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return findings{}, nil
	case c.ctx.Err() != nil:
		return findings{}, c.ctx.Err()
	case !errors.As(err, &exit):
		return findings{}, fmt.Errorf("headers: %w", err)
	}
	return read(out), nil
}

// read sorts the errors of a compiler.
func read(out []byte) findings {
	var f findings
	for line := range bytes.Lines(out) {
		if !bytes.Contains(line, []byte("error:")) {
			continue
		}
		switch g, u := differs.FindSubmatch(line), unknown.FindSubmatch(line); {
		case g != nil:
			if name := string(g[1]); !slices.Contains(f.differ, name) {
				f.differ = append(f.differ, name)
			}
		case u != nil:
			name := string(bytes.Join(u[1:], nil))
			if !slices.Contains(f.absent, name) {
				f.absent = append(f.absent, name)
			}
		case f.other == "" && !bytes.Contains(line, []byte("template argument")):
			if g := anyError.FindSubmatch(line); g != nil {
				f.other = string(bytes.TrimSpace(g[1]))
			}
		}
	}
	if f.other == "" && len(f.differ)+len(f.absent) == 0 {
		f.other = "the compiler says nothing"
	}
	if len(f.absent) > 0 {
		f.other = "" // what follows from it
	}
	return f
}
