package text

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/gotrain/gotrain/train/foreign"
)

// Values of Documents.Separator that are not text.
const (
	ByFile  = ""      // a file is a document
	ByBlank = "blank" // documents are divided by blank lines
	ByLine  = "line"  // a line is a document
)

// Documents configures how files are divided into documents.
type Documents struct {
	// Separator is ByFile, ByBlank, ByLine, or text such as "<|endoftext|>" on its own line between documents.
	Separator string
	// Field treats every line as a JSON object whose document is the string in that field (JSONL).
	Field string
	// ReplaceInvalid replaces bytes that are not UTF-8 by U+FFFD. Otherwise they are an error, because such a file is usually not text.
	ReplaceInvalid bool
}

// maxDocument is the largest document; a document is held in memory as a whole.
const maxDocument = 2 << 30

func (d Documents) check() error {
	if d.Field != "" && d.Separator != ByFile {
		return errors.New("text: both a separator and a JSON field are set\nhint: set only one")
	}
	if strings.ContainsAny(d.Separator, "\r\n") {
		return fmt.Errorf("text: the separator %q contains a line break; it must be a single line", d.Separator)
	}
	return nil
}

// doc is one document and where it comes from.
type doc struct {
	text string
	file string
	line int // its first line
}

// errStop ends reading without reporting an error.
var errStop = errors.New("stop")

// reader emits the documents of files in order.
type reader struct {
	Documents
	emit  func(doc) error // an error ends reading
	seen  bool            // the separator occurred
	files int
}

// file reads one file.
func (r *reader) file(path string) error {
	f, err := foreign.Open(path)
	if err != nil {
		return fmt.Errorf("text: %w", err)
	}
	defer f.Close()
	return r.from(path, f)
}

// from reads an open file.
func (r *reader) from(path string, f io.Reader) error {
	r.files++
	in := bufio.NewReaderSize(f, 1<<18)
	switch mark, _ := in.Peek(3); {
	case string(mark) == "\xef\xbb\xbf": // a byte-order mark is not text
		if _, err := in.Discard(3); err != nil {
			return fmt.Errorf("text: %s: %w", path, err)
		}
	case len(mark) > 1 && (mark[0] == 0x1f && mark[1] == 0x8b || string(mark) == "BZh" || string(mark) == "\x28\xb5\x2f"):
		return fmt.Errorf("text: %s is compressed\nhint: decompress it first", path)
	}
	if r.Separator == ByFile && r.Field == "" {
		return r.whole(path, in)
	}
	return r.lines(path, in)
}

func (r *reader) whole(path string, in io.Reader) error {
	var b strings.Builder
	if n, err := io.Copy(&b, io.LimitReader(in, maxDocument+1)); err != nil {
		return fmt.Errorf("text: %s: %w", path, err)
	} else if n > maxDocument {
		return tooLong(path, 1)
	}
	return r.give(doc{b.String(), path, 1})
}

func tooLong(path string, line int) error {
	return fmt.Errorf("text: %s:%d: the document is larger than %d GB\nhint: divide the file with a separator", path, line, maxDocument>>30)
}

// lines collects the lines of a file into documents.
func (r *reader) lines(path string, in *bufio.Reader) error {
	var held []byte
	start := 1
	for line := 1; ; line++ {
		before := len(held)
		n, err := readLine(in, &held)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("text: %s: %w", path, err)
		}
		if len(held) > maxDocument {
			return tooLong(path, start)
		}
		last := n == 0
		switch text := bytes.TrimRight(held[before:], "\r\n"); {
		case last:
		case r.Field != "":
			if err := r.object(path, line, text); err != nil {
				return err
			}
			held = held[:0]
			continue
		case r.Separator == ByLine:
		case r.Separator == ByBlank && len(bytes.TrimSpace(text)) == 0:
			held = held[:before]
		case r.Separator != ByBlank && string(text) == r.Separator:
			r.seen = true
			held = held[:before]
		default:
			continue
		}
		if text := strings.Trim(string(held), "\r\n"); strings.TrimSpace(text) != "" {
			if err := r.give(doc{text, path, start}); err != nil {
				return err
			}
		}
		held, start = held[:0], line+1
		if last {
			return nil
		}
	}
}

// readLine appends a line including its line break; n is 0 at the end of the file.
func readLine(in *bufio.Reader, dst *[]byte) (n int, err error) {
	for {
		part, err := in.ReadSlice('\n')
		*dst = append(*dst, part...)
		n += len(part)
		if !errors.Is(err, bufio.ErrBufferFull) || len(*dst) > maxDocument {
			return n, err
		}
	}
}

// object extracts a document from a line of JSON.
func (r *reader) object(path string, line int, raw []byte) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("text: %s:%d: %w", path, line, err)
	}
	value, ok := fields[r.Field]
	if !ok {
		return fmt.Errorf("text: %s:%d: no field %q", path, line, r.Field)
	}
	var text *string
	if err := json.Unmarshal(value, &text); err != nil {
		return fmt.Errorf("text: %s:%d: field %q is not a string", path, line, r.Field)
	}
	if text == nil {
		return nil // null: no text
	}
	return r.give(doc{*text, path, line})
}

func (r *reader) give(d doc) error {
	if !utf8.ValidString(d.text) {
		if !r.ReplaceInvalid {
			at := 0
			for i, c := range d.text {
				if at = i; c == utf8.RuneError && !strings.HasPrefix(d.text[i:], "\uFFFD") {
					break
				}
			}
			return fmt.Errorf("text: %s:%d: byte 0x%02x is not UTF-8\nhint: check that this is a text file; gotrain tokenize --replace-invalid replaces such bytes",
				d.file, d.line+strings.Count(d.text[:at], "\n"), d.text[at])
		}
		d.text = strings.ToValidUTF8(d.text, "\uFFFD")
	}
	return r.emit(d)
}

// expand lists the files of the inputs: given files, and all files below given directories, in alphabetical order, without hidden ones.
// Links to files count as files.
func expand(inputs []string) (files []string, size int64, err error) {
	for _, in := range inputs {
		st, err := os.Stat(in)
		if err != nil {
			return nil, 0, &InputError{fmt.Errorf("text: %w", err)}
		}
		if !st.IsDir() {
			files, size = append(files, in), size+st.Size()
			continue
		}
		err = filepath.WalkDir(in, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if p != in && strings.HasPrefix(d.Name(), ".") {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			if !d.Type().IsRegular() && d.Type()&fs.ModeSymlink == 0 {
				return nil
			}
			st, err := os.Stat(p) // a link counts as the file that it names: the cache of Hugging Face holds nothing else
			if err != nil {       // skipping it would silently drop data
				return err
			}
			if st.Mode().IsRegular() {
				files, size = append(files, p), size+st.Size()
			}
			return nil
		})
		if err != nil {
			return nil, 0, &InputError{fmt.Errorf("text: %w", err)}
		}
	}
	if len(files) == 0 {
		return nil, 0, &InputError{fmt.Errorf("text: no files in %s: %w", strings.Join(inputs, ", "), os.ErrNotExist)}
	}
	return files, size, nil
}
