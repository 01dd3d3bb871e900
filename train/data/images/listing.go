package images

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Listing returns the names of classes and pictures in a compact form, for FolderOptions.Listing. Listing a folder of a million pictures takes long on a
// network file system; one rank can do it for all.
func (f *Folder) Listing() []byte {
	return appendLabelled(f.classes, len(f.pictures), func(i int) (string, int32) { return f.pictures[i].name, f.pictures[i].label })
}

// appendLabelled writes the names of classes, and n names with their labels.
func appendLabelled(classes []string, n int, at func(i int) (name string, label int32)) []byte {
	b := appendTexts(nil, classes)
	b = binary.AppendUvarint(b, uint64(n))
	for i := range n {
		name, label := at(i)
		b = appendText(binary.AppendUvarint(b, uint64(label)), name)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendTexts appends a number of strings, and the strings.
func appendTexts(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendText(b, s)
	}
	return b
}

// listed takes the files from the listing.
func (f *Folder) listed() error {
	r := listing{rest: f.opt.Listing}
	f.classes = r.labelled(r.name,
		func(n int) { f.pictures = make([]file, 0, n) },
		func(name string, label int32) { f.pictures = append(f.pictures, file{name, label}) })
	if err := r.done(f.root); err != nil {
		return err
	}
	if f.opt.Classes != nil && !slices.Equal(f.opt.Classes, f.classes) {
		return fmt.Errorf("images: %s was listed with %d classes (%s), but is opened with %d (%s)",
			f.root, len(f.classes), shorten(f.classes), len(f.opt.Classes), shorten(f.opt.Classes))
	}
	return nil
}

// listing decodes a listing and keeps the first error.
type listing struct {
	rest []byte
	err  error
}

func (l *listing) fail(format string, a ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format, a...)
	}
	l.rest = nil
}

// labelled reads what appendLabelled has written: names by read, room for as many as follow, and each with its label.
func (l *listing) labelled(read func() string, room func(n int), add func(name string, label int32)) (classes []string) {
	for range l.count() {
		classes = append(classes, read())
	}
	n := l.count()
	room(n)
	for range n {
		label := int32(l.number(uint64(len(classes))))
		add(read(), label)
	}
	return classes
}

// number reads a number below limit.
func (l *listing) number(limit uint64) uint64 {
	v, n := binary.Uvarint(l.rest)
	if n <= 0 || v >= limit {
		l.fail("a number is missing or not below %d", limit)
		return 0
	}
	l.rest = l.rest[n:]
	return v
}

// count reads how many entries follow. Each takes at least a byte.
func (l *listing) count() int { return int(l.number(uint64(len(l.rest)) + 1)) }

// text reads a string.
func (l *listing) text() string {
	n := l.number(uint64(len(l.rest)) + 1)
	if n > uint64(len(l.rest)) {
		l.fail("a name is cut off")
		return ""
	}
	s := string(l.rest[:n])
	l.rest = l.rest[n:]
	return s
}

// name reads a name of a file or folder. It must not lead anywhere else.
func (l *listing) name() string {
	s := l.text()
	if s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\x00") {
		l.fail("%q is not the name of a file", s)
	}
	return s
}

// left returns an error for bytes after the end.
func (l *listing) left() error {
	if len(l.rest) == 0 {
		return nil
	}
	return fmt.Errorf("%d bytes follow its end", len(l.rest))
}

// done returns the error of a listing that was not read to its end.
func (l *listing) done(place string) error {
	if l.err != nil || len(l.rest) > 0 {
		return fmt.Errorf("images: %s: the listing is damaged: %w", place, errors.Join(l.err, l.left()))
	}
	return nil
}
