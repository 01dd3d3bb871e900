package images

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// ListOptions say how the rows of a CSV file become samples.
type ListOptions struct {
	Options
	// Path, Label and Split name the columns, by their title or by their number from 1. "": by the usual titles (path, file, filename, image …; label, class,
	// target …; split, set, subset), or the first two columns where the file has no titles.
	Path, Label, Split string
	// Rows takes only the rows that have this word in the split column; "": all.
	Rows string
	// Holdout sets a part of the rows apart, 0 to 1, by a hash of their paths, so that the same pictures stay apart when rows are added. Held takes this part,
	// otherwise the rest is taken. Of a file with a split column, both are parts of the rows for training (train); the others are left out.
	Holdout float64
	Held    bool
}

// List is a data.Source of the pictures that a CSV file names. Fields: image f32[3 H W], label i32.
type List struct {
	encoded
	file    string
	dir     string
	classes []string
	rows    []row
	marked  int
	splits  []string
}

type row struct {
	path  string // as written
	label int32
}

// NewList reads a CSV file: a row for each picture, with its path (absolute, or relative to the CSV file's folder) and its label, a name or a number from 0.
// Separators are commas, semicolons or tabs; cells may be quoted; a first row with the usual titles, or with those that the options name, is a header.
//
// It rejects, all at once and each with file and line: rows with missing or too many cells, empty cells, files that do not exist, and labels that Classes
// lacks.
func NewList(file string, o ListOptions) (*List, error) {
	if !(o.Holdout >= 0 && o.Holdout < 1) {
		return nil, fmt.Errorf("images: the part that is held out is %g\nhint: use 0 to 1", o.Holdout)
	}
	l := &List{file: file, dir: filepath.Dir(file)}
	if err := l.open(o.Options, listFiles{l}); err != nil {
		return nil, err
	}
	if o.Listing != nil {
		return l, l.listed()
	}
	if err := l.parse(&o); err != nil {
		return nil, err
	}
	return l, nil
}

// parse reads the file.
func (l *List) parse(o *ListOptions) error {
	table, err := readTable(l.file, o)
	if err != nil {
		return err
	}
	if len(table.words) == 0 && len(table.bad.all) == 0 {
		return table.none()
	}
	labels, classes := number(table.words, o.Classes, func(i int, reason string) { table.bad.add(table.lines[i], "%s:%d: %s", l.file, table.lines[i], reason) })
	l.classes, l.marked, l.splits = classes, table.marked, table.splits()
	if labels != nil {
		for i, p := range table.paths {
			l.rows = append(l.rows, row{p, labels[i]})
		}
	}
	l.missing(table)
	return table.bad.err(l.file, "paths are relative to the folder of the CSV file; correct these lines, or remove them")
}

// missing reports files that do not exist. Asking for a million files takes a while on a network file system, so many are asked for at a time.
func (l *List) missing(t *listTable) {
	errs := make([]error, len(l.rows))
	var wait sync.WaitGroup
	workers := min(len(l.rows), 4*runtime.GOMAXPROCS(0))
	for w := range workers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := w; i < len(l.rows); i += workers {
				st, err := os.Stat(l.path(i))
				if err == nil && !st.Mode().IsRegular() {
					err = fmt.Errorf("%s is not a file", l.path(i))
				}
				errs[i] = err
			}
		}()
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			t.bad.add(t.lines[i], "%s:%d: %v", l.file, t.lines[i], plainError(err))
		}
	}
}

// plainError leaves out the name of the system call.
func plainError(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}

// Name is "list FILE".
func (l *List) Name() string { return "list " + l.file }

// Classes are the names by label; those of numbers are their digits.
func (l *List) Classes() []string { return l.classes }

// Empty lists the classes without pictures, in the order of labels.
func (l *List) Empty() []string { return empty(l, l.classes) }

// Splits are the splits of the file's split column, by their names for ListOptions.Rows: train, val and test, as far as the column has them. They are empty
// without such a column, and where it has other words.
func (l *List) Splits() []string { return l.splits }

// Marked counts the rows that were taken because ListOptions.Rows asks for all, although the split column marks them as held out (val, test and so on). It is
// known where the file was read, and not from a Listing.
func (l *List) Marked() int { return l.marked }

// listFiles are the pictures of a list.
type listFiles struct{ *List }

func (l listFiles) count() int        { return len(l.rows) }
func (l listFiles) label(i int) int32 { return l.rows[i].label }

func (l listFiles) path(i int) string {
	p := filepath.FromSlash(l.rows[i].path)
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(l.dir, p)
}

func (l listFiles) read(i int, buf []byte) ([]byte, error) { return readFile(l.path(i), buf) }

// Listing returns classes and rows in a compact form, for Options.Listing.
func (l *List) Listing() []byte {
	return appendLabelled(l.classes, len(l.rows), func(i int) (string, int32) { return l.rows[i].path, l.rows[i].label })
}

// listed takes the rows from the listing.
func (l *List) listed() error {
	r := listing{rest: l.opt.Listing}
	l.classes = r.labelled(r.text,
		func(n int) { l.rows = make([]row, 0, n) },
		func(path string, label int32) { l.rows = append(l.rows, row{path, label}) })
	return r.done(l.file)
}

// Fingerprint hashes all paths and labels, and the sizes of up to 4096 files, evenly chosen.
func (l *List) Fingerprint() (string, error) {
	h := fnv.New64a()
	step := max(1, len(l.rows)/4096)
	for i, x := range l.rows {
		size := int64(-1)
		if i%step == 0 {
			st, err := os.Stat(l.path(i))
			if err != nil {
				return "", fmt.Errorf("images: %w", err)
			}
			size = st.Size()
		}
		fmt.Fprintf(h, "%d %s %d\n", x.label, x.path, size)
	}
	fmt.Fprintln(h, l.classes)
	return fmt.Sprintf("%016x", h.Sum64()), nil
}
