package images

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gotrain/gotrain/train/foreign"
)

// entry is a sample of a shard: where its picture lies, and the word for its label.
type entry struct {
	key    string // of WebDataset: the name up to the first dot, with its folders
	ext    string
	offset int64
	size   int64
	word   string
}

// maxLabel limits the bytes of a label; JSON may hold more.
const (
	maxLabel = 1 << 10
	maxJSON  = 16 << 20
)

// labelFields are the usual names of the label in a sample's JSON.
var labelFields = []string{"label", "cls", "class", "target", "label_name", "class_name"}

// scanner reads the members of one shard, in order.
type scanner struct {
	file  string
	size  int64
	field string // of JSON; "": the usual ones
	in    io.ReadSeeker
	tar   *tar.Reader
	out   []entry
	seen  map[string]bool // keys
	bad   problems

	open  bool // a sample is being read
	now   entry
	at    int64 // of its first member
	exts  []string
	words map[string]string // by extension: cls, txt, json
	json  func()            // reports what is wrong with the JSON; nil: nothing
}

// scan lists the samples of a shard, unless ctx ends before. What is wrong with it is reported all at once.
func scan(ctx context.Context, file, field string) ([]entry, error) {
	f, err := foreign.Open(file)
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	defer f.Close()
	var head [3]byte
	if n, _ := f.ReadAt(head[:], 0); n == 3 && head[0] == 0x1f && head[1] == 0x8b {
		return nil, fmt.Errorf("images: %s is compressed, so its samples cannot be read in any order\nhint: gunzip it; pictures hardly shrink", file)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	s := &scanner{file: file, size: st.Size(), field: field, in: f, tar: tar.NewReader(f), seen: map[string]bool{}}
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		h, err := s.tar.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		at, _ := f.Seek(0, io.SeekCurrent)
		if err != nil {
			s.problem(at, "the archive ends here, or is damaged: %v", err)
			break
		}
		s.member(h, at)
	}
	s.finish()
	if len(s.out) == 0 && len(s.bad.all) == 0 {
		return nil, fmt.Errorf("images: %s has no samples\nhint: a sample is a picture and its label, such as 000017.jpg and 000017.cls", file)
	}
	return s.out, s.bad.err(file, "make the shard again, or leave it out of the pattern")
}

func (s *scanner) problem(at int64, format string, a ...any) {
	s.bad.add(len(s.bad.all), "%s: byte %d: %s", s.file, at, fmt.Sprintf(format, a...))
}

// member takes one file of the archive; its bytes begin at at.
func (s *scanner) member(h *tar.Header, at int64) {
	base := path.Base(h.Name)
	if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeGNUSparse || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "__") {
		return // folders, links, what macOS adds, and WebDataset's own notes
	}
	stem, ext, _ := strings.Cut(base, ".")
	key := path.Join(path.Dir(h.Name), stem)
	if !utf8.ValidString(key) || strings.ContainsRune(key, 0) {
		s.problem(at, "the name %q is not UTF-8", h.Name)
		return
	}
	if !s.open || key != s.now.key {
		s.finish()
		if s.seen[key] {
			s.problem(at, "sample %s comes twice, or its members are not next to each other", key)
		}
		s.seen[key] = true
		s.open, s.now, s.at, s.exts, s.words, s.json = true, entry{key: key}, at, s.exts[:0], map[string]string{}, nil
	}
	ext = strings.ToLower(ext)
	if slices.Contains(s.exts, ext) {
		s.problem(at, "sample %s has two members .%s", key, ext)
		return
	}
	s.exts = append(s.exts, ext)
	switch {
	case sparse(h):
		s.problem(at, "%s is a sparse member, whose bytes are not all in the archive", h.Name)
	case h.Size > s.size-at:
		s.problem(at, "%s has %d bytes, but the archive ends %d bytes after its start", h.Name, h.Size, max(0, s.size-at))
	}
	switch ext {
	case "jpg", "jpeg", "png", "gif":
		switch {
		case s.now.ext != "":
			s.problem(at, "sample %s has two pictures, .%s and .%s", key, s.now.ext, ext)
		case h.Size < 1 || h.Size > maxFile:
			s.problem(at, "the picture %s has %d bytes", h.Name, h.Size)
		}
		s.now.ext, s.now.offset, s.now.size = ext, at, h.Size
	case "cls", "txt":
		s.label(ext, h, at, maxLabel)
	case "json":
		s.label(ext, h, at, maxJSON)
	}
}

// sparse says whether the archive lacks holes of a file: its size and its bytes there are not those of the file.
func sparse(h *tar.Header) bool {
	if h.Typeflag == tar.TypeGNUSparse {
		return true
	}
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// label reads the member of a label.
func (s *scanner) label(ext string, h *tar.Header, at, limit int64) {
	if h.Size > limit {
		switch ext { // a long text is no label
		case "cls":
			s.problem(at, "%s has %d bytes, too many for a label", h.Name, h.Size)
		case "json":
			s.json = func() { s.problem(at, "%s has %d bytes, too many for a label", h.Name, h.Size) }
		}
		return
	}
	raw, err := io.ReadAll(s.tar)
	if err != nil {
		s.problem(at, "reading %s: %v", h.Name, err)
		return
	}
	word := strings.TrimSpace(string(raw))
	if ext == "json" {
		if word, err = jsonLabel(raw, s.field); err != nil {
			s.json = func() { s.problem(at, "%s: %v", h.Name, err) }
		}
	}
	if strings.ContainsAny(word, "\n\r\x00") || !utf8.ValidString(word) {
		if ext == "cls" {
			s.problem(at, "%s is not one line of text", h.Name)
		}
		return
	}
	s.words[ext] = word
}

// jsonLabel finds the label in a sample's JSON; "" if there is none.
func jsonLabel(raw []byte, field string) (string, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return "", fmt.Errorf("no JSON object: %w", err)
	}
	fields := labelFields
	if field != "" {
		fields = []string{field}
	}
	for _, f := range fields {
		v, ok := all[f]
		if !ok || string(v) == "null" {
			continue
		}
		var n int
		var s string
		if json.Unmarshal(v, &n) == nil {
			return fmt.Sprint(n), nil
		}
		if json.Unmarshal(v, &s) == nil {
			return strings.TrimSpace(s), nil
		}
		return "", fmt.Errorf("%q is neither a number nor a text", f)
	}
	if field != "" {
		return "", fmt.Errorf("no %q", field)
	}
	return "", nil
}

// finish takes the sample that was read, if it is one.
func (s *scanner) finish() {
	if !s.open {
		return
	}
	s.open = false
	if s.json != nil && (s.field != "" || s.words["cls"] == "") { // the label depends on it
		s.json()
	}
	for _, ext := range []string{"cls", "json", "txt"} {
		if w := s.words[ext]; w != "" && (s.field == "" || ext == "json") {
			s.now.word = w
			break
		}
	}
	switch {
	case s.now.ext == "":
		s.problem(s.at, "sample %s has no picture (.jpg, .jpeg, .png, .gif), only .%s", s.now.key, strings.Join(s.exts, ", ."))
	case s.now.word == "":
		s.problem(s.at, "sample %s has no label (.cls, .json or .txt)", s.now.key)
	default:
		s.out = append(s.out, s.now)
	}
}
