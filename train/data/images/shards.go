package images

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"sync"

	"github.com/gotrain/gotrain/train/foreign"
)

// ShardOptions say how the members of tar shards become samples.
type ShardOptions struct {
	Options
	// Root is the folder that the pattern is relative to; braces and * in its name have no meaning. "": the working directory.
	Root string
	// Label names the field of a sample's JSON that holds its label. "": the member .cls, else the JSON's "label", "cls", "class" or "target", else .txt.
	Label string
	// Cache is a folder for indexes. "": gotrain's folder in the user's cache; "-": none.
	Cache string
	// Indexed is called, one call at a time, when a shard was read for its index; later runs find the index. It may be nil.
	Indexed func(done, all int)
}

// Shards is a data.Source of pictures in tar archives as WebDataset makes them: members with one name and different extensions are a sample
// (n01440764/000017.jpg and n01440764/000017.cls). Fields: image f32[3 H W], label i32.
//
// The archives are read once, for an index of their members, which is kept in the user's cache and is good as long as size and times of the archive stay as
// they are. After that every sample is read by itself, at its place: in any order, by any rank, and by a run that resumes without reading what came before.
type Shards struct {
	encoded
	pattern string
	names   []string
	stamps  []stamp
	classes []string
	members []member
	labels  []int32

	mu       sync.Mutex
	held     []*os.File // open ones, by shard; nil: not open
	many     int        // how many are open
	most     int        // how many stay open
	compared []bool     // by shard: its stamp was compared, so that only its size is compared from then on
}

type member struct {
	shard int32
	entry
}

// maxOpen is the number of shards that are kept open, at most; further ones are opened for each sample.
const maxOpen = 512

// NewShards opens the shards of a pattern, such as "/data/train-{000..099}.tar" or "/data/train-*.tar" (see Expand), and reads those whose index is not
// known. Labels are names of classes or numbers from 0.
//
// It rejects, all at once and each with file and byte: archives that are cut off or compressed, samples without a picture or a label, and with two of them,
// samples whose members are apart, and labels that Classes lacks. ctx ends the reading.
func NewShards(ctx context.Context, pattern string, o ShardOptions) (*Shards, error) {
	s := &Shards{pattern: filepath.Join(o.Root, pattern)}
	if err := s.encoded.open(o.Options, shardFiles{s}); err != nil {
		return nil, err
	}
	var err error
	if s.names, err = shardNames(o.Root, pattern); err != nil {
		return nil, err
	}
	s.held, s.compared, s.most = make([]*os.File, len(s.names)), make([]bool, len(s.names)), mostOpen()
	if o.Listing != nil {
		return s, s.listed()
	}
	cache := o.Cache
	switch cache {
	case "":
		cache = indexFolder()
	case "-":
		cache = ""
	}
	lists, stamps, err := indexShards(ctx, s.names, o.Label, cache, o.Indexed)
	if err != nil {
		return nil, err
	}
	s.stamps = stamps
	return s, s.take(lists)
}

// take makes samples of the entries of all shards.
func (s *Shards) take(lists [][]entry) error {
	var words []string
	for i, list := range lists {
		for _, e := range list {
			words = append(words, e.word)
			e.word = "" // the label stands for it
			s.members = append(s.members, member{int32(i), e})
		}
	}
	var bad problems
	s.labels, s.classes = number(words, s.opt.Classes, func(i int, reason string) { bad.add(i, "%s: %s", s.Path(i), reason) })
	return bad.err(s.pattern, "use the shards of one data set for training and evaluation")
}

// Name is "shards PATTERN".
func (s *Shards) Name() string { return "shards " + s.pattern }

// Classes are the names by label; those of numbers are their digits.
func (s *Shards) Classes() []string { return s.classes }

// Empty lists the classes without pictures, in the order of labels.
func (s *Shards) Empty() []string { return empty(s, s.classes) }

// shardFiles are the pictures of shards.
type shardFiles struct{ *Shards }

func (s shardFiles) count() int        { return len(s.members) }
func (s shardFiles) label(i int) int32 { return s.labels[i] }

func (s shardFiles) path(i int) string {
	m := &s.members[i]
	return s.names[m.shard] + "(" + m.key + "." + m.ext + ")"
}

// read reads the bytes of a member at its place.
func (s shardFiles) read(i int, buf []byte) ([]byte, error) {
	m := &s.members[i]
	f, release, err := s.file(int(m.shard))
	if err != nil {
		return buf, err
	}
	defer release()
	buf = sized(buf, int(m.size))
	if n, err := f.ReadAt(buf, m.offset); n < len(buf) {
		return buf, fmt.Errorf("reading %s: byte %d of %d: %w", s.path(i), n, m.size, err)
	}
	return buf, nil
}

// file opens a shard, or takes the open one. release is called after reading.
func (s *Shards) file(shard int) (f *os.File, release func(), err error) {
	keep := func() {}
	f, whole, err := s.opened(shard)
	if f != nil || err != nil {
		return f, keep, err
	}
	if f, err = foreign.Open(s.names[shard]); err != nil {
		return nil, nil, err
	}
	if err := s.unchanged(f, shard, whole); err != nil {
		f.Close()
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.held == nil:
		f.Close()
		return nil, nil, s.closed()
	case s.held[shard] != nil: // by another goroutine meanwhile
		f.Close()
		return s.held[shard], keep, nil
	}
	s.compared[shard] = true
	if s.many >= s.most {
		return f, func() { f.Close() }, nil
	}
	s.held[shard] = f
	s.many++
	return f, keep, nil
}

// opened is the open file of a shard, or nil; whole says that its stamp was not compared yet.
func (s *Shards) opened(shard int) (f *os.File, whole bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return nil, false, s.closed()
	}
	return s.held[shard], !s.compared[shard], nil
}

func (s *Shards) closed() error { return fmt.Errorf("%s: the shards are closed", s.pattern) }

// unchanged compares a file with the one that the index is of: the whole stamp, or only its size.
func (s *Shards) unchanged(f *os.File, shard int, whole bool) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	const hint = "\nhint: do not change shards while a run reads them"
	was := s.stamps[shard]
	switch is := stampOf(st); {
	case is.size != was.size:
		return fmt.Errorf("%s has %d bytes, but had %d when its index was made%s", s.names[shard], is.size, was.size, hint)
	case whole && is != was:
		return fmt.Errorf("%s is not the file any more that it was when its index was made%s", s.names[shard], hint)
	}
	return nil
}

// Close closes the shards. Idempotent; no sample can be loaded afterwards.
func (s *Shards) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.held {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	s.held = nil
	return errors.Join(errs...)
}

// Listing returns classes, shards and members in a compact form, for Options.Listing.
func (s *Shards) Listing() []byte {
	b := appendTexts(nil, s.classes)
	b = binary.AppendUvarint(b, uint64(len(s.stamps)))
	at := 0
	for i, is := range s.stamps {
		var list []entry
		for ; at < len(s.members) && int(s.members[at].shard) == i; at++ {
			list = append(list, s.members[at].entry)
		}
		b = appendEntries(binary.AppendUvarint(b, uint64(is.size)), list)
	}
	for _, l := range s.labels {
		b = binary.AppendUvarint(b, uint64(l))
	}
	return b
}

// listed takes the members from the listing.
func (s *Shards) listed() error {
	r := listing{rest: s.opt.Listing}
	for range r.count() {
		s.classes = append(s.classes, r.text())
	}
	if n := r.count(); n != len(s.names) && r.err == nil {
		return fmt.Errorf("images: %s has %d shards here, but %d where they were listed", s.pattern, len(s.names), n)
	}
	for i := range s.names {
		size := int64(r.number(1 << 62))
		s.stamps, s.compared[i] = append(s.stamps, stamp{size: size}), true // of the times, other machines may see others
		for _, e := range r.entries(size) {
			s.members = append(s.members, member{int32(i), e})
		}
	}
	for range s.members {
		s.labels = append(s.labels, int32(r.number(uint64(len(s.classes)))))
	}
	return r.done(s.pattern)
}

// Fingerprint hashes names and sizes of the shards, and the names, sizes and labels of all members.
func (s *Shards) Fingerprint() (string, error) {
	h := fnv.New64a()
	for i, n := range s.names {
		fmt.Fprintln(h, filepath.Base(n), s.stamps[i].size)
	}
	for i, m := range s.members {
		fmt.Fprintln(h, m.shard, m.key, m.offset, m.size, s.labels[i])
	}
	fmt.Fprintln(h, s.classes)
	return fmt.Sprintf("%016x", h.Sum64()), nil
}
