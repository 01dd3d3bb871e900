package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// standInTorchrun starts ranks with torchrun's variables, where PyTorch is not installed.
const standInTorchrun = `#!/bin/bash
n=1
while [[ $1 == --* ]]; do case $1 in --nproc_per_node=*) n=${1#*=} ;; --master_port=*) port=${1#*=} ;; esac; shift; done
export WORLD_SIZE=$n LOCAL_WORLD_SIZE=$n GROUP_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
for ((i = 0; i < n; i++)); do RANK=$i LOCAL_RANK=$i "$@" & all+=" $!"; done
for p in $all; do wait "$p" || exit; done
`

// Every command of docs/from-pytorch.md, in order, with its recipe.
func TestFromPyTorch(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three dozen ranks")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	page := readFile(t, "../../docs/from-pytorch.md")
	recipe := regexp.MustCompile("(?s)```toml\n# (my\\.toml)\n(.*?)```").FindStringSubmatch(page)
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1)
	if recipe == nil || len(blocks) < 5 {
		t.Fatalf("recipe %v, %d blocks", recipe != nil, len(blocks))
	}
	bin, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"gotrain": "#!/bin/sh\nGOTRAIN_TEST_MAIN=1 exec '" + os.Args[0] + "' \"$@\"\n", "torchrun": standInTorchrun} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "build", "-o", bin, "../hcclrun").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Few steps, and no measurement of the peak: the results are not of interest.
	text := strings.NewReplacer("epochs = 1", "steps = 3", "[log]\n", "[log]\npeak_tflops = 1\n").Replace(recipe[2])
	if err := os.WriteFile(filepath.Join(dir, recipe[1]), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range blocks {
		for line := range strings.Lines(block[1]) {
			line = strings.ReplaceAll(strings.TrimSpace(line), "--set run.epochs=2", "--set run.steps=6")
			start := time.Now()
			cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), fmt.Sprintf("GOTRAIN_MASTER_PORT=%d", 20000+(os.Getpid()+ran)%9000))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s\n%v\n%s", line, err, tail(string(out)))
			}
			t.Log(time.Since(start).Round(time.Millisecond), line)
			ran++
		}
	}
	t.Log(ran, "commands")
}

// Keys that the pages for newcomers and operators name exist, and so do the files and sections that they link.
func TestPagesNameWhatExists(t *testing.T) {
	key := regexp.MustCompile("`([a-z]+\\.[a-z_]+)( = [^`]*)?`")
	const sections = " run model llama data train comm optim schedule eval checkpoint log "
	reference := readFile(t, "../../docs/recipes.md") // generated from the schema
	for _, name := range []string{"docs/from-pytorch.md", "docs/operations.md", "SECURITY.md", "README.md"} {
		page := readFile(t, filepath.Join("../..", name))
		for _, m := range key.FindAllStringSubmatch(page, -1) {
			section, _, _ := strings.Cut(m[1], ".")
			isKey := strings.Contains(sections, " "+section+" ") && !strings.HasSuffix(m[1], ".safetensors")
			if isKey && !documented(reference, m[1]) {
				t.Errorf("%s: %s is no key of a recipe", name, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#\s]*)(#[^)]*)?\)`).FindAllStringSubmatch(page, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file := filepath.Join("../..", filepath.Dir(name), m[1])
			if m[1] == "" {
				file = filepath.Join("../..", name)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if m[2] != "" && !hasHeading(readFile(t, file), m[2][1:]) {
				t.Errorf("%s: %s has no heading %s", name, m[1], m[2])
			}
		}
	}
}

// documented reports whether the reference of recipes has a key in its section.
func documented(reference, key string) bool {
	section, name, _ := strings.Cut(key, ".")
	_, below, _ := strings.Cut(reference, "## ["+section+"]\n")
	below, _, _ = strings.Cut(below, "\n## [")
	return strings.Contains(below, "| `"+name+"` |")
}

// hasHeading reports whether a page has the heading to which GitHub gives an anchor.
func hasHeading(page, anchor string) bool {
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		title = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(title, "")
		if strings.ReplaceAll(title, " ", "-") == anchor {
			return true
		}
	}
	return false
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
