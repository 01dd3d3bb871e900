package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/internal/notices"
)

// Every module in the notices has a licence that is recognised, so the bill never says less than it could.
func TestLicencesAreRecognised(t *testing.T) {
	covered := covers(notices.Text())
	modules := 0
	for name, ids := range covered {
		data := strings.HasPrefix(name, "the bundled data set ")
		if ids == "" && !data {
			t.Errorf("%s: its licence is none of those that identify knows", name)
		}
		if strings.Contains(name, "/") && !data {
			modules++
		}
	}
	if modules < 20 || covered["the Go standard library and runtime"] != "BSD-3-Clause" || covered["github.com/BurntSushi/toml v1.6.0"] != "MIT" {
		t.Errorf("%d modules of %v", modules, slices.Sorted(maps.Keys(covered)))
	}
}

// The bill has what the linker recorded, the data, and one reference for each.
func TestBill(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	text, err := bill(target{"linux", "amd64"}, when, []string{os.Args[0]})
	if err != nil {
		t.Fatal(err)
	}
	again, err := bill(target{"linux", "amd64"}, when, []string{os.Args[0]})
	if err != nil || string(again) != string(text) {
		t.Errorf("not the same twice: %v", err)
	}
	var b bom
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.Metadata.Timestamp != "2026-01-02T03:04:05Z" || !strings.HasPrefix(b.Serial, "urn:uuid:") || len(b.Serial) != 45 {
		t.Errorf("%+v", b)
	}
	seen := map[string]bool{}
	for _, c := range b.Components {
		if seen[c.Ref] {
			t.Errorf("%s twice", c.Ref)
		}
		seen[c.Ref] = true
	}
	if !seen["data:flowers"] || !slices.ContainsFunc(b.Components, func(c component) bool { return c.Name == "std" && len(c.Licences) == 1 }) ||
		len(b.Dependencies) != 1 || len(b.Dependencies[0].Uses) != len(b.Components) {
		t.Errorf("%s", text)
	}
}

// Two archives of the same files are equal, whenever and by whomever they are made.
func TestArchiveIsReproducible(t *testing.T) {
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	for name, text := range map[string]string{"LICENSE": "l", "docs/a.md": "a", "deploy/x.sh": "x", "deploy/release/main.go": "no", "stray": "no"} {
		file := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "LICENSE", "docs", "deploy"}} {
		if out, err := exec.Command("git", append([]string{"-C", tree}, args...)...).CombinedOutput(); err != nil {
			t.Skipf("git: %v %s", err, out)
		}
	}
	program := filepath.Join(dir, "gotrain")
	r := &release{root: tree, time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for i, name := range []string{"a.tar.gz", "b.tar.gz"} {
		if err := os.WriteFile(program, []byte("program"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(program, time.Unix(int64(i), 0), time.Unix(int64(i), 0)); err != nil {
			t.Fatal(err)
		}
		if err := r.archive(context.Background(), filepath.Join(dir, name), "gotrain_v1", []string{program}, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	sums, err := checksums(dir, []string{"a.tar.gz", "b.tar.gz"})
	if err != nil || len(sums) != 2*(64+2+9) || sums[:64] != sums[75:139] {
		t.Errorf("%s%v", sums, err)
	}
	want := "gotrain 755, NOTICES.txt 644, sbom.cdx.json 644, LICENSE 644, deploy/x.sh 755, docs/a.md 644"
	if got := contents(t, filepath.Join(dir, "a.tar.gz")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func contents(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return strings.Join(out, ", ")
		}
		if err != nil {
			t.Fatal(err)
		}
		name, below := strings.CutPrefix(h.Name, "gotrain_v1/")
		if !below || h.Uid != 0 || h.Uname != "" || !h.ModTime.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
			t.Errorf("%+v", h)
		}
		out = append(out, name+" "+map[int64]string{0o755: "755", 0o644: "644"}[h.Mode])
	}
}

func TestTargets(t *testing.T) {
	got, err := parseTargets("linux/amd64, darwin/arm64")
	if err != nil || len(got) != 2 || got[1].String() != "darwin/arm64" {
		t.Error(got, err)
	}
	for _, bad := range []string{"", "linux", "windows/amd64", "linux/386"} {
		if _, err := parseTargets(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestNewer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"2.34", "2.34", false}, {"2.2.5", "2.34", false}, {"2.35", "2.34", true}, {"2.34.1", "2.34", true}, {"2.9", "2.34", false}, {"3", "2.34", true}} {
		if got := newer(c.a, c.b); got != c.want {
			t.Errorf("%s newer than %s: %v", c.a, c.b, got)
		}
	}
}
