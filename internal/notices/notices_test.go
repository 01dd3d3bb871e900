package notices

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite THIRD_PARTY_NOTICES.txt; look at the difference before committing it")

// module is a dependency that is linked into a program.
type module struct{ Path, Version, Dir string }

// linked returns the modules that the programs import on any platform that they are built for.
func linked(t *testing.T) []module {
	t.Helper()
	all := map[string]module{}
	for _, target := range []string{"linux/amd64", "linux/arm64", "darwin/arm64"} {
		cmd := exec.Command("go", "list", "-deps", "-json=Module", "../../cmd/gotrain", "../../cmd/hcclrun")
		system, arch, _ := strings.Cut(target, "/")
		cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list for %s: %v", target, err)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				Module *struct {
					module
					Main bool
				}
			}
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if p.Module != nil && !p.Module.Main {
				all[p.Module.Path] = p.Module.module
			}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b module) int { return strings.Compare(a.Path, b.Path) })
}

var licenceName = regexp.MustCompile(`(?i)^(.*-)?(licen[cs]e|copying|notice|patents)(\.(txt|md))?$`)

// licences returns the licence texts of a module: those at its top, and those of third-party code in it.
func licences(t *testing.T, m module) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"*", "THIRD_PARTY_LICENSES/*"} {
		files, err := filepath.Glob(filepath.Join(m.Dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if licenceName.MatchString(filepath.Base(f)) {
				out = append(out, read(t, f))
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s %s has no licence: it must not be linked", m.Path, m.Version)
	}
	return out
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))
}

// write composes the notices: each text is printed once, below everything that it covers.
func write(t *testing.T) string {
	t.Helper()
	var order []string
	holders := map[string][]string{}
	add := func(who, text string) {
		if holders[text] == nil {
			order = append(order, text)
		}
		holders[text] = append(holders[text], who)
	}
	var list []string
	for _, m := range linked(t) {
		who := m.Path + " " + m.Version
		list = append(list, who)
		for _, text := range licences(t, m) {
			add(who, text)
		}
	}
	add("the Go standard library and runtime", read(t, "testdata/go-LICENSE"))
	list = append(list, "the Go standard library and runtime")
	for _, f := range []string{"fashion-mini/LICENSE.txt", "flowers/ATTRIBUTION.txt", "shakespeare/README.md", "stories260k/LICENSE.txt"} {
		who := "the bundled data set " + filepath.Dir(f)
		list = append(list, who)
		add(who, read(t, filepath.Join("../../recipes/data", filepath.FromSlash(f))))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "What is in gotrain's programs besides gotrain, and the licences of it\n\n  %s\n", strings.Join(list, "\n  "))
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(holders[text], "\n"), text)
	}
	return b.String()
}

// The program contains the licence of everything linked, in the linked version.
func TestNoticesAreComplete(t *testing.T) {
	want := write(t)
	if *update {
		if err := os.WriteFile("THIRD_PARTY_NOTICES.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if Text() == want {
		return
	}
	has, wants := strings.Split(Text(), "\n"), strings.Split(want, "\n")
	for i := range wants {
		if i >= len(has) || has[i] != wants[i] {
			t.Fatalf("line %d is not %q; run: go test ./internal/notices -update", i+1, wants[i])
		}
	}
	t.Fatal("the notices list more than is linked; run: go test ./internal/notices -update")
}

// fixed lists the versions that fix published advisories about linked modules.
var fixed = map[string]string{
	"github.com/gogo/protobuf":   "v1.3.2",  // CVE-2021-3121
	"google.golang.org/protobuf": "v1.33.0", // CVE-2024-24786
	"golang.org/x/sys":           "v0.1.0",  // CVE-2022-29526
}

// No module is linked in a version with an advisory that was known when this table was last updated.
func TestAdvisories(t *testing.T) {
	seen := 0
	for _, m := range linked(t) {
		if least := fixed[m.Path]; least != "" {
			seen++
			if older(m.Version, least) {
				t.Errorf("%s %s has a known advisory, fixed in %s", m.Path, m.Version, least)
			}
		}
	}
	if seen != len(fixed) {
		t.Errorf("%d of %d modules of the table are linked: remove the others", seen, len(fixed))
	}
}

// older compares versions of the form vA.B.C.
func older(a, b string) bool {
	var x, y [3]int
	fmt.Sscanf(a, "v%d.%d.%d", &x[0], &x[1], &x[2])
	fmt.Sscanf(b, "v%d.%d.%d", &y[0], &y[1], &y[2])
	return slices.Compare(x[:], y[:]) < 0
}

func TestOlder(t *testing.T) {
	if !older("v1.28.0", "v1.33.0") || older("v1.33.0", "v1.33.0") || older("v1.36.12", "v1.4.0") || !older("v0.0.0-2020", "v0.1.0") {
		t.Error("versions are compared wrongly")
	}
}
