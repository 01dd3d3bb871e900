package text_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/train/data/text"
	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// The twin of Pack: encode document by document, in a loop.
func twin(t *testing.T, docs []string, bos, eos bool) (out []int32) {
	tok := tok512(t)
	for _, d := range docs {
		if bos {
			out = append(out, tok.BOS())
		}
		out = tok.Encode(out, d)
		if eos {
			out = append(out, tok.EOS())
		}
	}
	return out
}

func TestSeparators(t *testing.T) {
	docs := []string{"one fish", "two fish\nred fish", "blue fish"}
	line := []string{"one fish", "two fish", "red fish"}
	for _, c := range []struct {
		name, content string
		d             text.Documents
		want          []string
	}{
		{"file", "\ufeff" + "one fish\n\n", text.Documents{}, []string{"one fish\n\n"}},
		{"blank", "\n\none fish\n\n \ntwo fish\nred fish\n\nblue fish", text.Documents{Separator: text.ByBlank}, docs},
		{"text", "one fish\n<|end|>\ntwo fish\nred fish\r\n<|end|>\r\nblue fish\n<|end|>\n", text.Documents{Separator: "<|end|>"}, docs},
		{"line", "one fish\r\n\ntwo fish\nred fish", text.Documents{Separator: text.ByLine}, line},
		{"json", `{"text":"one fish","n":1}` + "\n\n" + `{"text":"two fish\nred fish"}` + "\n" + `{"text":null}` + "\n" + `{"text":"blue fish"}`, text.Documents{Field: "text"}, docs},
	} {
		path := write(t, c.name, c.content)
		train, val, err := text.FromText(t.Context(), []string{path}, text.Options{Tokenizer: tok512(t), Documents: c.d, BOS: true, EOS: true})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, want := ids(t, train), twin(t, c.want, true, true); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
		if val != nil || train.Documents() != int64(len(c.want)) {
			t.Errorf("%s: val %v, %d documents", c.name, val, train.Documents())
		}
	}
}

func TestTextErrors(t *testing.T) {
	tok := tok512(t)
	for _, c := range []struct {
		content string
		o       text.Options
		want    string
	}{
		{"one\ntwo \xff", text.Options{}, "f:2: byte 0xff is not UTF-8"},
		{"one\n\nthree \xff", text.Options{Documents: text.Documents{Separator: text.ByBlank}}, "f:3: byte 0xff is not UTF-8"},
		{"\x1f\x8b\x08", text.Options{}, "is compressed"},
		{"", text.Options{}, "the inputs contain no text"},
		{"one\ntwo", text.Options{Documents: text.Documents{Separator: "<|x|>"}}, `no line is equal to the separator "<|x|>"`},
		{"one", text.Options{Documents: text.Documents{Separator: "a\nb"}}, "line break"},
		{"one", text.Options{Documents: text.Documents{Separator: "a", Field: "b"}}, "both a separator and a JSON field"},
		{"{\"text\":\"a\"}\n{\"txt\":\"b\"}", text.Options{Documents: text.Documents{Field: "text"}}, `f:2: no field "text"`},
		{"{\"text\":1}", text.Options{Documents: text.Documents{Field: "text"}}, `f:1: field "text" is not a string`},
		{"{\"text\":", text.Options{Documents: text.Documents{Field: "text"}}, `f:1: unexpected end`},
		{"a\n\nb\n\nc", text.Options{Documents: text.Documents{Separator: text.ByBlank}, ValFraction: 0.01}, "3 documents are too few to use 0.01"},
		{"a", text.Options{ValFraction: 0.1}, "too few"},
		{"a", text.Options{ValFraction: 0.9}, "from 0 to 0.5"},
	} {
		c.o.Tokenizer = tok
		_, _, err := text.FromText(t.Context(), []string{write(t, "f", c.content)}, c.o)
		wantError(t, err, c.want)
	}
	_, _, err := text.FromText(t.Context(), []string{"no-such-file"}, text.Options{Tokenizer: tok})
	if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	train, _, err := text.FromText(
		t.Context(),
		[]string{write(t, "f", "ok \xff")},
		text.Options{Tokenizer: tok, Documents: text.Documents{ReplaceInvalid: true}},
	)
	if err != nil || string(tok.Decode(nil, ids(t, train))) != "ok \ufffd" {
		t.Error("an invalid byte was not replaced", err)
	}
}

// Whatever the workers and shards, the ids are those of the twin; val and train together are all documents.
func TestPackEqualsTwin(t *testing.T) {
	docs := stories(3000)
	in := write(t, "stories.txt", strings.Join(docs, "\n\n"))
	var first []byte
	for _, workers := range []int{1, 3} {
		out := filepath.Join(t.TempDir(), "shards")
		o := text.PackOptions{
			Options: text.Options{
				Tokenizer:   tok512(t),
				Documents:   text.Documents{Separator: text.ByBlank},
				BOS:         true,
				ValFraction: 0.05,
				Workers:     workers,
			},
			ShardBytes: 100_000,
		}
		r, err := text.Pack(t.Context(), out, []string{in}, o)
		if err != nil {
			t.Fatal(err)
		}
		train, err := text.OpenShards(out, text.Train)
		if err != nil {
			t.Fatal(err)
		}
		defer train.Close()
		val, err := text.OpenShards(out, text.Val)
		if err != nil {
			t.Fatal(err)
		}
		defer val.Close()
		if train.Documents() != 2850 || val.Documents() != 150 || r.Documents != 3000 {
			t.Errorf("%d documents for training, %d for validation, %d in all", train.Documents(), val.Documents(), r.Documents)
		}
		if len(r.Manifest.Splits["train"].Shards) < 2 {
			t.Error("only one shard")
		}
		// both splits keep the order, so the documents of the twin can be taken from their heads
		a, b := ids(t, train), ids(t, val)
		for i, d := range docs {
			want := twin(t, []string{d}, true, false)
			switch {
			case len(a) >= len(want) && slices.Equal(a[:len(want)], want):
				a = a[len(want):]
			case len(b) >= len(want) && slices.Equal(b[:len(want)], want):
				b = b[len(want):]
			default:
				t.Fatalf("document %d is in neither split", i)
			}
		}
		if len(a)+len(b) > 0 {
			t.Errorf("%d ids too many", len(a)+len(b))
		}
		raw := dirBytes(t, out)
		if first == nil {
			first = raw
		} else if !bytes.Equal(first, raw) {
			t.Error("another number of workers gave other bytes")
		}
	}
}

func dirBytes(t *testing.T, dir string) (all []byte) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, e.Name()...), raw...)
	}
	return all
}

// A single document is cut at its end by tokens.
func TestSingleDocument(t *testing.T) {
	doc := strings.Repeat("To be, or not to be. ", 100)
	train, val, err := text.FromText(t.Context(), []string{write(t, "f", doc)}, text.Options{Tokenizer: tok512(t), ValFraction: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	all := twin(t, []string{doc}, false, false)
	if got := append(ids(t, train), ids(t, val)...); !slices.Equal(got, all) {
		t.Error("the parts are not the whole")
	}
	if n := float64(len(all)); float64(val.Len()) < 0.099*n || float64(val.Len()) > 0.101*n {
		t.Errorf("%d of %d tokens for validation", val.Len(), len(all))
	}
}

func TestPackPlaces(t *testing.T) {
	o := text.PackOptions{Options: text.Options{Tokenizer: tok512(t)}}
	in := []string{write(t, "f", "some text")}
	dir := t.TempDir()
	out := filepath.Join(dir, "deep", "shards")
	pack := func(out string) error {
		_, err := text.Pack(t.Context(), out, in, o)
		return err
	}
	if err := pack(out); err != nil {
		t.Fatal(err)
	}
	wantError(t, pack(out), "already holds shards")
	o.Replace = true
	if err := pack(out); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(out, "notes.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	wantError(t, pack(out), "also holds notes.txt")
	wantError(t, pack(dir), "does not hold shards")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := text.Pack(ctx, filepath.Join(dir, "x"), in, o); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	in[0] = write(t, "f", "bad \xff")
	wantError(t, pack(filepath.Join(dir, "y")), "not UTF-8")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestDamagedShards(t *testing.T) {
	out := filepath.Join(t.TempDir(), "shards")
	if _, err := text.Pack(t.Context(), out, []string{write(t, "f", strings.Repeat("hello ", 50))},
		text.PackOptions{Options: text.Options{Tokenizer: tok512(t)}}); err != nil {
		t.Fatal(err)
	}
	shard := filepath.Join(out, "train_000000.bin")
	good, err := os.ReadFile(shard)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(out, text.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	try := func(raw []byte, want string) {
		t.Helper()
		if err := os.WriteFile(shard, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := text.OpenShards(out, text.Train)
		if err == nil {
			c.Close()
		}
		wantError(t, err, want)
	}
	edit := func(at int, b byte) []byte {
		raw := bytes.Clone(good)
		raw[at] = b
		return raw
	}
	try(good[:len(good)-1], "damaged")
	try(good[:100], "fewer than the header")
	try(nil, "fewer than the header")
	try(edit(0, 1), "not a token shard")
	try(edit(4, 9), "version 9")
	try(edit(11, 0x80), "the header gives -")
	try(append(edit(8, good[8]+1), 0, 0), "dataset.json lists")
	if err := os.Remove(shard); err != nil {
		t.Fatal(err)
	}
	if _, err := text.OpenShards(out, text.Train); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	_, err = text.OpenShards(out, "test")
	wantError(t, err, `no split "test"`)
	if err := os.WriteFile(filepath.Join(out, text.ManifestName), manifest[:len(manifest)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = text.OpenShards(out, text.Train)
	wantError(t, err, "unexpected end")
}

// A shard that shrinks while it is mapped must not end the process.
func TestShrinkingShard(t *testing.T) {
	out := filepath.Join(t.TempDir(), "shards [new]*") // a folder is no pattern
	if _, err := text.Pack(t.Context(), out, []string{write(t, "f", strings.Repeat("hello ", 20_000))},
		text.PackOptions{Options: text.Options{Tokenizer: tok512(t)}}); err != nil {
		t.Fatal(err)
	}
	c, err := text.OpenShards(filepath.Join(out, "train_*.bin"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := os.Truncate(filepath.Join(out, "train_000000.bin"), 2000); err != nil {
		t.Fatal(err)
	}
	wantError(t, c.Read(make([]int32, 10), c.Len()-10), "can no longer be read")
}

func FuzzManifest(f *testing.F) {
	m := text.Manifest{
		Format:    "gotrain-tokens-1",
		Tokenizer: text.Info{Vocab: 5},
		Splits:    map[string]*text.Split{"train": {Tokens: 3, Shards: []text.Shard{{File: "a.bin", Tokens: 3}}}},
	}
	raw, err := json.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"format":"gotrain-tokens-1","splits":{"train":null}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := text.ParseManifest(raw)
		if err != nil {
			return
		}
		for _, s := range m.Splits {
			for _, f := range s.Shards {
				if filepath.Base(f.File) != f.File {
					t.Errorf("shard %q is elsewhere", f.File)
				}
			}
		}
	})
}

// during does something the first time that a text is tokenised.
type during struct {
	tokenizer.Tokenizer
	once *sync.Once
	do   func()
}

func (d during) Encode(dst []int32, text string) []int32 {
	d.once.Do(d.do)
	return d.Tokenizer.Encode(dst, text)
}

// Of two that write to one place the first to finish wins: the other does not replace it without being told to.
func TestPackBesideAnother(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	tok := during{tok512(t), &sync.Once{}, func() {
		_, err := text.Pack(t.Context(), out, []string{write(t, "g", "another text")}, text.PackOptions{Options: text.Options{Tokenizer: tok512(t)}})
		if err != nil {
			t.Error(err)
		}
	}}
	_, err := text.Pack(t.Context(), out, []string{write(t, "f", "hello")}, text.PackOptions{Options: text.Options{Tokenizer: tok}})
	if !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
	m, err := text.ReadManifest(out)
	if err != nil || len(m.Inputs) != 1 || m.Inputs[0].File != "g" {
		t.Errorf("%+v, %v", m, err)
	}
	if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}
