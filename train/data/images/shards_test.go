package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// archive makes a tar file of names and contents; "PIC" stands for a picture.
func archive(t testing.TB, path string, members ...string) []byte {
	raw, err := os.ReadFile("testdata/zoo/png_named_jpg.jpg")
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i := 0; i < len(members); i += 2 {
		body := []byte(members[i+1])
		if members[i+1] == "PIC" {
			body = raw
		}
		h := &tar.Header{Name: members[i], Mode: 0o644, Size: int64(len(body))}
		if strings.HasSuffix(h.Name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if path != "" {
		if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return buf.Bytes()
}

func TestExpand(t *testing.T) {
	for pattern, want := range map[string]string{
		"a.tar":              "a.tar",
		"t-{000..002}.tar":   "t-000.tar t-001.tar t-002.tar",
		"t-{8..11}":          "t-8 t-9 t-10 t-11",
		"{08..10}":           "08 09 10",
		"{a,b}/{0..1}.tar":   "a/0.tar a/1.tar b/0.tar b/1.tar",
		"x{7..7}y":           "x7y",
		"{a,}z":              "az z",
		"{0..1":              "!",
		"0}":                 "!",
		"{1}":                "!",
		"{2..1}":             "!",
		"{{0..1}}":           "!",
		"{0..99999999}":      "!",
		"{a..b}":             "!",
		"{0..2000}{0..2000}": "!",
	} {
		got, err := Expand(pattern)
		if want == "!" {
			if err == nil {
				t.Errorf("%s gives %v", pattern, got)
			}
		} else if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s gives %v %v, want %s", pattern, got, err, want)
		}
	}
}

func shardOptions(dir string) ShardOptions {
	return ShardOptions{Options: tinyCrop, Cache: filepath.Join(dir, "cache")}
}

func TestShards(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "cache"), 0o700); err != nil {
		t.Fatal(err)
	}
	archive(t, filepath.Join(dir, "t-00.tar"), "cats/", "", "cats/1.jpg", "PIC", "cats/1.cls", "3\n", "cats/1.json", `{"label": "no"}`, "cats/._2.jpg", "x",
		"dogs/1.JPEG", "PIC", "dogs/1.txt", "0", "dogs/1.seg.png", "x")
	archive(t, filepath.Join(dir, "t-01.tar"), strings.Repeat("long/", 40)+"9.json", `{"id": 4, "label": 1}`, strings.Repeat("long/", 40)+"9.png", "PIC")
	o := shardOptions(dir)
	reads := 0
	o.Indexed = func(_, all int) { reads++ }
	pattern := filepath.Join(dir, "t-{00..01}.tar")
	s, err := NewShards(t.Context(), pattern, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Len() != 3 || !slices.Equal(s.labels, []int32{3, 0, 1}) || strings.Join(s.Classes(), " ") != "0 1 2 3" ||
		!slices.Equal(s.Empty(), []string{"2"}) || reads != 2 {
		t.Fatalf("%d samples, labels %v, classes %v, %d shards read", s.Len(), s.labels, s.classes, reads)
	}
	if p := s.Path(0); p != filepath.Join(dir, "t-00.tar")+"(cats/1.jpg)" {
		t.Error(p)
	}
	if bad, err := data.Check(t.Context(), s, 1); err != nil || len(bad) > 0 {
		t.Error(bad, err)
	}
	finger, err := s.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string, o ShardOptions) {
		t.Helper()
		again, err := NewShards(t.Context(), pattern, o)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer again.Close()
		if f, err := again.Fingerprint(); err != nil || f != finger {
			t.Errorf("%s: fingerprint %s %v, want %s", what, f, err, finger)
		}
		if _, err := again.Encoded(2, nil); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	same("from the cache", o)
	if reads != 2 {
		t.Error("a shard with an index is read again")
	}
	listed := o
	listed.Listing = s.Listing()
	same("from the listing", listed)
	// A damaged index is made again, and so is one of an older version of the shard.
	kept, _ := filepath.Glob(filepath.Join(o.Cache, "*.index"))
	for _, k := range kept {
		raw, _ := os.ReadFile(k)
		raw[len(raw)/2] ^= 1
		if err := os.WriteFile(k, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	same("after damage", o)
	archive(t, filepath.Join(dir, "t-01.tar"), "9.cls", "1", "9.png", "PIC", "8.jpg", "PIC", "8.cls", "1")
	changed, err := NewShards(t.Context(), pattern, o)
	if err != nil || changed.Len() != 4 || reads != 5 {
		t.Errorf("changed: %v, %d samples, %d shards read", err, changed.Len(), reads)
	}
	changed.Close()
	if _, err := changed.Encoded(0, nil); err == nil {
		t.Error("closed shards are read")
	}
}

// All problems of a shard are reported at once, with file and byte.
func TestShardProblems(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "a.tar")
	archive(t, at, "1.jpg", "PIC", "2.cls", "1", "3.jpg", "PIC", "3.cls", "0", "3.png", "PIC", "1.cls", "7",
		"4.jpg", "", "4.cls", "1", "5.json", "{", "5.jpg", "PIC")
	_, err := NewShards(t.Context(), at, shardOptions(dir))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"sample 1 has no label", "sample 2 has no picture", "sample 3 has two pictures", "sample 1 comes twice", "4.jpg has 0 bytes",
		"5.json: no JSON object", "a.tar: byte 512", "hint: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	whole := archive(t, at, "1.jpg", "PIC", "1.cls", "1", "2.jpg", "PIC", "2.cls", "1")
	for _, n := range []int{len(whole) - 3000, 700, 100} {
		if err := os.WriteFile(at, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := NewShards(t.Context(), at, shardOptions(dir)); err == nil {
			t.Errorf("an archive of %d bytes of %d is accepted", n, len(whole))
		}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(whole); err != nil {
		t.Fatal(err)
	}
	z.Close()
	if err := os.WriteFile(at, packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]string{
		at:                                  "compressed",
		filepath.Join(dir, "b-{0..9}.tar"):  "10 of the shards",
		filepath.Join(dir, "c*.tar"):        "missing",
		"https://example.org/a.tar":         "is no file",
		filepath.Join(dir, "{a,a}.tar"):     "twice",
		filepath.Join(dir, "{a.tar"):        "without }",
		filepath.Join(dir, "no", "one.tar"): "missing",
	} {
		if _, err := NewShards(t.Context(), pattern, shardOptions(dir)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", pattern, err, want)
		}
	}
	// Labels that the training set does not have, and a shard that changes below a run.
	archive(t, at, "1.jpg", "PIC", "1.cls", "cow")
	o := shardOptions(dir)
	o.Classes = []string{"cat"}
	if _, err := NewShards(t.Context(), at, o); err == nil || !strings.Contains(err.Error(), `a.tar(1.jpg): label "cow"`) {
		t.Error(err)
	}
	s, err := NewShards(t.Context(), at, shardOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	archive(t, at, "1.jpg", "PIC", "1.cls", "cow", "2.jpg", "PIC", "2.cls", "cow")
	if _, err := s.Encoded(0, nil); err == nil || !strings.Contains(err.Error(), "when its index was made") {
		t.Error(err)
	}
}

// More shards than are kept open can be read.
func TestManyShards(t *testing.T) {
	dir := t.TempDir()
	const n = maxOpen + 8
	one := archive(t, "", "1.jpg", "PIC", "1.cls", "0")
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.tar", i)), one, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := NewShards(t.Context(), filepath.Join(dir, "*.tar"), ShardOptions{Options: tinyCrop, Cache: "-"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range s.Len() {
		if _, err := s.Encoded(i, nil); err != nil {
			t.Fatal(err)
		}
	}
	if s.many != mostOpen() || s.Len() != n {
		t.Errorf("%d of %d are open", s.many, s.Len())
	}
}

// The name of the folder is no pattern; below it patterns are expanded.
func TestShardsBelow(t *testing.T) {
	root := filepath.Join(t.TempDir(), `a[1]*{b,c}?\d`)
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"t-0.tar", "t-1.tar"} {
		archive(t, filepath.Join(root, n), "1.jpg", "PIC", "1.cls", "3")
	}
	for pattern, want := range map[string]int{"t-*.tar": 2, "t-{0..1}.tar": 2, "t-[1].tar": 1, "t-0.tar": 1} {
		s, err := NewShards(t.Context(), pattern, ShardOptions{Options: tinyCrop, Cache: "-", Root: root})
		if err != nil {
			t.Error(err)
			continue
		}
		defer s.Close()
		if _, err := s.Encoded(0, nil); err != nil || s.Len() != want || s.Name() != "shards "+filepath.Join(root, pattern) {
			t.Errorf("%s: %d samples, want %d: %v", s.Name(), s.Len(), want, err)
		}
	}
	_, err := NewShards(t.Context(), "v-*.tar", ShardOptions{Options: tinyCrop, Cache: "-", Root: root})
	if err == nil || !strings.Contains(err.Error(), filepath.Join(root, "v-*.tar")) {
		t.Error(err)
	}
}

// A shard that is written again with the size and the time that it had is read again, and is refused by who has its older index.
func TestRewrittenShard(t *testing.T) {
	at := filepath.Join(t.TempDir(), "a.tar")
	o := ShardOptions{Options: tinyCrop, Cache: t.TempDir()}
	archive(t, at, "1.jpg", "PIC", "1.cls", "3")
	first, err := NewShards(t.Context(), at, o)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	st, err := os.Stat(at)
	if err != nil {
		t.Fatal(err)
	}
	was := stampOf(st)
	if was.change == 0 {
		t.Skip("this system does not tell when a file changed")
	}
	for is := was; is == was; is = stampOf(st) { // the clock of a file system has coarse ticks
		archive(t, at, "1.jpg", "PIC", "1.cls", "5")
		if err := os.Chtimes(at, st.ModTime(), st.ModTime()); err != nil {
			t.Fatal(err)
		}
		if st, err = os.Stat(at); err != nil {
			t.Fatal(err)
		}
	}
	if is := stampOf(st); is.size != was.size || is.time != was.time {
		t.Fatalf("%+v, was %+v", is, was)
	}
	if _, err := first.Encoded(0, nil); err == nil || !strings.Contains(err.Error(), "when its index was made") {
		t.Error(err)
	}
	second, err := NewShards(t.Context(), at, o)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if _, err := second.Encoded(0, nil); err != nil || second.Label(0) != 5 {
		t.Errorf("label %d, %v, want 5", second.Label(0), err)
	}
	// Once it was opened, permissions and links may change, which no index depends on.
	second.held[0].Close()
	second.held[0], second.many = nil, 0
	if err := os.Chmod(at, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Encoded(0, nil); err != nil {
		t.Error(err)
	}
}

func FuzzIndex(f *testing.F) {
	is := stamp{size: 5000, time: 7}
	f.Add(formatIndex([]entry{{key: "a/1", ext: "jpg", word: "3", offset: 512, size: 99}}, is))
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := parseIndex(raw, is)
		for _, e := range list {
			if err == nil && (e.offset < 0 || e.size < 0 || e.offset+e.size > is.size) {
				t.Errorf("%+v lies outside", e)
			}
		}
	})
}

func FuzzScan(f *testing.F) {
	f.Add(archive(f, "", "1.jpg", "x", "1.cls", "1", "2.json", `{"label": 2}`, "2.png", "y"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, raw []byte) {
		file := filepath.Join(dir, "a.tar")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := scan(t.Context(), file, "")
		for _, e := range list {
			if err == nil && (e.offset < 0 || e.size < 1 || e.word == "") {
				t.Errorf("%+v", e)
			}
		}
	})
}
