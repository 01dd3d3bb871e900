package images

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gotrain/gotrain/train/foreign"
)

// listTable is what was read of a CSV file: a path, a word for the label, and the line of each row that was taken.
type listTable struct {
	file         string
	paths, words []string
	lines        []int
	bad          problems
	seen         map[string]int // words of the split column, and how many rows have them
	columns      [3]int         // of path, label and split; -1: none
	rows         string         // word of the split column; "": all rows
	width        int
	marked       int // rows that were taken although the split column marks them as held out
}

// titles are the usual names of the columns.
var titles = [3][]string{
	{"path", "file", "filename", "file_name", "filepath", "file_path", "image", "image_path", "img", "img_path", "image_id"},
	{"label", "class", "target", "category", "class_name", "label_name", "cls", "y"},
	{"split", "set", "subset", "partition", "fold"},
}

var columnWords = [3]string{"path", "label", "split"}

// readTable reads a file.
func readTable(file string, o *ListOptions) (*listTable, error) {
	f, err := foreign.Open(file)
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	head, _ := in.Peek(1 << 14)
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3)
		head = head[3:]
	}
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return nil, fmt.Errorf("images: %s is UTF-16\nhint: save it as CSV with UTF-8", file)
	}
	r := csv.NewReader(in)
	r.Comma, r.FieldsPerRecord, r.ReuseRecord = separator(head), -1, true
	t := &listTable{file: file, rows: o.Rows, seen: map[string]int{}}
	for first := true; ; first = false {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			t.bad.add(parse.Line, "%s:%d: column %d: %v", file, parse.Line, parse.Column, parse.Err)
			return t, nil // where a quote is missing, the rest means nothing
		}
		if err != nil {
			return nil, fmt.Errorf("images: reading %s: %w", file, err)
		}
		line, _ := r.FieldPos(0)
		if first {
			header, err := t.findColumns(cells, o)
			if err != nil {
				return nil, err
			}
			if header {
				continue
			}
		}
		t.row(cells, line, o)
	}
}

// separator is the one of comma, semicolon and tab that the first line has most of.
func separator(head []byte) rune {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	best, n := ',', bytes.Count(line, []byte(","))
	for _, c := range ";\t" {
		if k := bytes.Count(line, []byte(string(c))); k > n {
			best, n = c, k
		}
	}
	return best
}

// findColumns decides from the first row where the columns are, and whether the row is a header.
func (t *listTable) findColumns(cells []string, o *ListOptions) (header bool, err error) {
	t.width = len(cells)
	names := make([]string, len(cells))
	for i, c := range cells {
		names[i] = strings.ToLower(strings.TrimSpace(c))
	}
	asked := [3]string{o.Path, o.Label, o.Split}
	for k := range t.columns {
		t.columns[k] = -1
		switch n, err := strconv.Atoi(asked[k]); {
		case err == nil && n >= 1 && n <= len(cells):
			t.columns[k] = n - 1
			header = header || slices.Contains(titles[k], names[n-1])
		case err == nil:
			return false, fmt.Errorf("images: %s:1: the %s is to be in column %d, but there are %d", t.file, columnWords[k], n, len(cells))
		case asked[k] != "":
			if t.columns[k] = slices.Index(names, strings.ToLower(asked[k])); t.columns[k] < 0 {
				return false, fmt.Errorf("images: %s:1: no column has the title %q of the %s; there are %s", t.file, asked[k], columnWords[k], strings.Join(cells, ", "))
			}
			header = true
		default:
			for _, title := range titles[k] {
				if i := slices.Index(names, title); i >= 0 && !slices.Contains(t.columns[:k], i) {
					t.columns[k], header = i, true
					break
				}
			}
		}
	}
	for k := range 2 {
		if t.columns[k] >= 0 {
			continue
		}
		if header {
			return false, fmt.Errorf("images: %s:1: no column has a title that means the %s (%s); there are %s\nhint: name it with data.%s_column",
				t.file, columnWords[k], strings.Join(titles[k], ", "), strings.Join(cells, ", "), columnWords[k])
		}
		if len(cells) < 2 {
			return false, fmt.Errorf("images: %s:1: one column, want a path and a label\nhint: separate them by a comma, a semicolon or a tab", t.file)
		}
		t.columns[k] = k
	}
	if header && isPicture(names[t.columns[0]]) {
		header = false // y is a usual title, and also the label of a row
	}
	if o.Rows != "" && t.columns[2] < 0 {
		return false, fmt.Errorf("images: %s has no column that says which split a row belongs to\nhint: name it with data.split_column, "+
			"or use data.eval_fraction; to train on all rows, set data.eval_split to another file", t.file)
	}
	if o.Holdout > 0 && o.Rows == "" && t.columns[2] >= 0 {
		t.rows = "train"
	}
	return header, nil
}

// row takes one row.
func (t *listTable) row(cells []string, line int, o *ListOptions) {
	if len(cells) == 1 && strings.TrimSpace(cells[0]) == "" {
		return
	}
	if len(cells) != t.width {
		t.bad.add(line, "%s:%d: %d cells, want %d as in the first row", t.file, line, len(cells), t.width)
		return
	}
	path, word := strings.TrimSpace(cells[t.columns[0]]), strings.TrimSpace(cells[t.columns[1]])
	marked := false
	if s := t.columns[2]; s >= 0 {
		split := strings.ToLower(strings.TrimSpace(cells[s]))
		if t.seen[split]++; t.rows != "" && !sameSplit(split, t.rows) {
			return
		}
		marked = t.rows == "" && (slices.Contains(heldOutWords, split) || split == "test")
	}
	switch {
	case path == "":
		t.bad.add(line, "%s:%d: the path is empty", t.file, line)
		return
	case word == "":
		t.bad.add(line, "%s:%d: the label is empty", t.file, line)
		return
	case !utf8.ValidString(path) || !utf8.ValidString(word):
		t.bad.add(line, "%s:%d: not UTF-8", t.file, line)
		return
	}
	if o.Holdout > 0 && held(path, o.Holdout) != o.Held {
		return
	}
	if marked {
		t.marked++
	}
	t.paths, t.words, t.lines = append(t.paths, strings.Clone(path)), append(t.words, strings.Clone(word)), append(t.lines, line)
}

// splits names what the split column has; a word that is none of these means that it is not about training and evaluation.
func (t *listTable) splits() (names []string) {
	known := 0
	for _, name := range []string{"train", "val", "test"} {
		was := known
		for word := range t.seen {
			if sameSplit(word, name) {
				known++
			}
		}
		if known > was {
			names = append(names, name)
		}
	}
	if known < len(t.seen) {
		return nil
	}
	return names
}

// heldOutWords are names of a held-out split that mean the same.
var heldOutWords = []string{"val", "valid", "validation", "eval", "dev"}

func sameSplit(a, b string) bool {
	b = strings.ToLower(b)
	return a == b || slices.Contains(heldOutWords, a) && slices.Contains(heldOutWords, b) || (a == "train" || a == "training") && (b == "train" || b == "training")
}

// held says whether a path is in the part that is held out.
func held(path string, part float64) bool {
	h := fnv.New64a()
	_, _ = io.WriteString(h, path)
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // FNV's upper bits hardly change with the last letters
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11)*0x1p-53 < part
}

// none explains why no row was taken.
func (t *listTable) none() error {
	if t.rows == "" || len(t.seen) == 0 {
		return fmt.Errorf("images: %s has no rows to use", t.file)
	}
	var words []string
	for w, n := range t.seen {
		words = append(words, fmt.Sprintf("%q (%d)", w, n))
	}
	slices.Sort(words)
	return fmt.Errorf("images: %s has no row of the split %q; its splits are %s", t.file, t.rows, shorten(words))
}
