package text_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/text"
)

// corpus makes three documents, with BOS and EOS as asked.
func corpus(t testing.TB, bos, eos bool, n int) *text.Corpus {
	t.Helper()
	in := write(t, "f", strings.Join(stories(n), "\n\n"))
	c, _, err := text.FromText(
		t.Context(),
		[]string{in},
		text.Options{Tokenizer: tok512(t), Documents: text.Documents{Separator: text.ByBlank}, BOS: bos, EOS: eos},
	)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func source(t testing.TB, c *text.Corpus, o text.SourceOptions) *text.Source {
	t.Helper()
	s, err := text.NewSource(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func window(t testing.TB, s *text.Source, i int) [][]int32 {
	t.Helper()
	var raw [][]byte
	var out [][]int32
	for _, f := range s.Fields() {
		b := make([]int32, f.Elems())
		for i := range b {
			b[i] = -7 // what was there before must not shine through
		}
		out = append(out, b)
		buf := make([]byte, 0, 4*len(b))
		for _, v := range b {
			buf = binary.NativeEndian.AppendUint32(buf, uint32(v))
		}
		raw = append(raw, buf)
	}
	if err := s.Load(t.Context(), nil, i, raw); err != nil {
		t.Fatal(err)
	}
	for i := range out {
		copy(out[i], data.I32(raw[i]))
	}
	return out
}

// Every token but the very first is a target exactly once, behind its predecessor.
func TestEveryTokenIsATargetOnce(t *testing.T) {
	c := corpus(t, true, false, 9)
	all := ids(t, c)
	for _, seq := range []int{1, 7, 64, len(all) - 1, len(all), 2 * len(all)} {
		s := source(t, c, text.SourceOptions{Seq: seq, Pad: true, Vocab: 512})
		var got []int32
		for i := range s.Len() {
			w := window(t, s, i)
			for j, target := range w[1] {
				if target == data.Ignore {
					continue
				}
				if w[0][j] != all[len(got)] {
					t.Fatalf("seq %d: window %d has %d at %d, want %d", seq, i, w[0][j], j, all[len(got)])
				}
				got = append(got, target)
			}
		}
		if !slices.Equal(got, all[1:]) {
			t.Errorf("seq %d: %d targets, want %d", seq, len(got), len(all)-1)
		}
		if seq < len(all) {
			drop := source(t, c, text.SourceOptions{Seq: seq})
			if want := (len(all) - 1) / seq; drop.Len() != want {
				t.Errorf("seq %d: %d whole windows, want %d", seq, drop.Len(), want)
			}
		}
	}
}

// The twin of divide: walk over the whole text, knowing where the documents are.
func TestDocuments(t *testing.T) {
	const n, seq = 9, 50
	for _, marks := range [][2]bool{{true, false}, {false, true}, {true, true}} {
		c := corpus(t, marks[0], marks[1], n)
		var doc []int
		for i, d := range stories(n) {
			for range twin(t, []string{d}, marks[0], marks[1]) {
				doc = append(doc, i)
			}
		}
		s := source(t, c, text.SourceOptions{Seq: seq, Documents: true, Pad: true})
		ignored := 0
		for i := range s.Len() {
			w := window(t, s, i)
			for j := range seq {
				at := i*seq + j
				if at >= len(doc) {
					if w[1][j] != data.Ignore || w[2][j] <= w[2][len(doc)-1-i*seq] {
						t.Errorf("padding at %d: target %d, segment %d", at, w[1][j], w[2][j])
					}
					continue
				}
				if want := doc[at] - doc[i*seq]; w[2][j] != int32(want) {
					t.Fatalf("%v: token %d is in segment %d, want %d", marks, at, w[2][j], want)
				}
				cross := at+1 >= len(doc) || doc[at+1] != doc[at]
				if cross != (w[1][j] == data.Ignore) {
					t.Fatalf("%v: token %d: target %d, at the end of a document: %v", marks, at, w[1][j], cross)
				}
				if cross {
					ignored++
				}
			}
		}
		if ignored != n {
			t.Errorf("%v: %d targets are ignored, want %d", marks, ignored, n)
		}
	}
	_, err := text.NewSource(corpus(t, false, false, 3), text.SourceOptions{Seq: 8, Documents: true})
	wantError(t, err, "does not mark where documents begin")
}

// Stopping in the middle of an epoch and going on, also on two ranks, gives the windows that a run without a stop gets.
func TestResume(t *testing.T) {
	out := filepath.Join(t.TempDir(), "shards")
	o := text.PackOptions{Options: text.Options{Tokenizer: tok512(t), Documents: text.Documents{Separator: text.ByBlank}, BOS: true}, ShardBytes: 3000}
	if _, err := text.Pack(t.Context(), out, []string{write(t, "f", strings.Join(stories(100), "\n\n"))}, o); err != nil {
		t.Fatal(err)
	}
	c, err := text.OpenShards(out, text.Train)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := source(t, c, text.SourceOptions{Seq: 32, Documents: true, Vocab: 512})
	read := func(from data.State, batch, rank, world, batches int) (rows []string, at data.State) {
		l, err := data.NewLoader(
			s,
			data.Options{Batch: batch, Rank: rank, World: world, Seed: 3, Shuffle: true, Epochs: 2, Tail: data.Drop, From: from, Workers: 3},
		)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for ; batches != 0; batches-- {
			b, err := l.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for r := range batch {
				rows = append(rows, fmt.Sprint(b.I32(0)[32*r:32*r+32], b.I32(1)[32*r:32*r+32], b.I32(2)[32*r:32*r+32]))
			}
			at = b.Next
			b.Release()
		}
		return rows, at
	}
	whole, _ := read(data.State{}, 4, 0, 1, -1)
	head, at := read(data.State{}, 4, 0, 1, 7)
	tail, _ := read(at, 4, 0, 1, -1)
	if !slices.Equal(append(head, tail...), whole) {
		t.Error("a resumed epoch differs")
	}
	zero, _ := read(at, 2, 0, 2, 5)
	one, _ := read(at, 2, 1, 2, 5)
	both := append(zero, one...)
	want := slices.Clone(whole[28 : 28+20])
	slices.Sort(both)
	slices.Sort(want)
	if !slices.Equal(both, want) {
		t.Error("two ranks went on with other windows")
	}
}

// Shards and memory hold the same; so do the fingerprints, wherever the shards are and however they are cut.
func TestShardsEqualMemory(t *testing.T) {
	in := []string{write(t, "f", strings.Repeat("Once upon a time. ", 500))}
	mem, _, err := text.FromText(t.Context(), in, text.Options{Tokenizer: tok512(t)})
	if err != nil {
		t.Fatal(err)
	}
	want := source(t, mem, text.SourceOptions{Seq: 10})
	wantFP, err := want.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{1500, 1 << 20} {
		out := filepath.Join(t.TempDir(), "s")
		if _, err := text.Pack(t.Context(), out, in, text.PackOptions{Options: text.Options{Tokenizer: tok512(t)}, ShardBytes: size}); err != nil {
			t.Fatal(err)
		}
		c, err := text.OpenShards(out, text.Train)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if !slices.Equal(ids(t, c), ids(t, mem)) {
			t.Error("other ids")
		}
		if fp, err := source(t, c, text.SourceOptions{Seq: 10}).Fingerprint(); err != nil || fp != wantFP {
			t.Errorf("fingerprint %s, want %s, %v", fp, wantFP, err)
		}
		if err := c.Match(tok512(t)); err != nil {
			t.Error(err)
		}
	}
	if fp, _ := source(t, mem, text.SourceOptions{Seq: 11}).Fingerprint(); fp == wantFP {
		t.Error("another length has the same fingerprint")
	}
}

// llm.c's files: no manifest, a split in the name, documents that begin with one id.
func TestForeignShards(t *testing.T) {
	dir := t.TempDir()
	save := func(name string, magic, version int32, tokens any, n int) {
		h := make([]int32, 256)
		h[0], h[1], h[2] = magic, version, int32(n)
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := errors.Join(binary.Write(f, binary.LittleEndian, h), binary.Write(f, binary.LittleEndian, tokens)); err != nil {
			t.Fatal(err)
		}
	}
	save("tiny_train_000001.bin", 20240520, 1, []uint16{9, 1, 2, 9, 65535}, 5)
	save("tiny_train_000002.bin", 20240801, 7, []uint32{9, 128255}, 2)
	save("tiny_val.bin", 20240520, 1, []uint16{9, 1, 2}, 3)
	c, err := text.OpenShards(dir, text.Train)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := ids(t, c); !slices.Equal(got, []int32{9, 1, 2, 9, 65535, 9, 128255}) {
		t.Error(got)
	}
	if top, err := c.MaxID(); err != nil || top != 128255 {
		t.Errorf("greatest id %d, %v", top, err)
	}
	wantError(t, c.CheckVocab(128000), "id 128255")
	s := source(t, c.Delimited(9, -1), text.SourceOptions{Seq: 6, Documents: true})
	if w := window(t, s, 0); !slices.Equal(w[2], []int32{0, 0, 0, 1, 1, 2}) || !slices.Equal(w[1], []int32{1, 2, data.Ignore, 65535, data.Ignore, 128255}) {
		t.Error(w)
	}
	bad := source(t, c, text.SourceOptions{Seq: 6, Vocab: 1000})
	raw := [][]byte{make([]byte, 24), make([]byte, 24)}
	wantError(t, bad.Load(t.Context(), nil, 0, raw), "tiny_train_000001.bin, token 4: id 65535")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	wantError(t, c.Read(make([]int32, 1), 0), "is closed")
	_, err = text.OpenShards(dir, "test")
	wantError(t, err, "nor shards with")
}

func TestSourceErrors(t *testing.T) {
	c := corpus(t, true, true, 3)
	for _, x := range []struct {
		o    text.SourceOptions
		want string
	}{
		{text.SourceOptions{}, "window length must be at least 1"},
		{text.SourceOptions{Seq: 1 << 20}, "too few for a window"},
		{text.SourceOptions{Seq: 8, Vocab: 300}, "vocabulary has only 300"},
	} {
		_, err := text.NewSource(c, x.o)
		wantError(t, err, x.want)
	}
}
