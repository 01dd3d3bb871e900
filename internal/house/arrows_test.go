package house

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/gotrain/gotrain"

// arrows lists what a package may import from this module. A name matches the package; with /... it also matches the packages below. The longest
// matching entry applies; a package without an entry is an error, so a new package needs an entry.
var arrows = map[string]string{
	"npu":                 "",
	"npu/queue":           "npu",
	"npu/kind":            "npu",
	"npu/ref":             "npu npu/kind npu/queue",
	"npu/solib":           "",
	"npu/tune":            "npu internal/usercache",
	"npu/cpu":             "npu npu/... internal/cgroup",
	"npu/acl":             "npu npu/... internal/amount",
	"npu/acl/abi/headers": "npu/acl/abi",
	"npu/acl/abi":         "",
	"npu/acl/lower":       "npu npu/kind npu/acl/abi",
	"npu/acl/doctor":      "npu/acl/... ddp/comm/hccl/settings internal/amount", // settings imports nothing
	"npu/...":             "npu npu/... ",                                       // devices

	"graph/op":         "npu npu/kind",
	"graph/plan":       "npu npu/kind graph/op",
	"graph":            "npu npu/kind graph/op graph/plan",
	"graph/roofline":   "npu npu/kind graph/op", // pure: what bounds the kernels of a step
	"graph/nn":         "npu graph graph/op",
	"graph/models/...": "npu graph graph/nn graph/models/...",
	"graph/graphtest":  "npu/... graph/...", // for tests

	"ddp/bucket":     "npu",
	"ddp/schedule":   "", // pure: the order of collectives of a step
	"ddp/simulate":   "ddp/bucket ddp/schedule ddp/comm/link",
	"ddp/compress":   "npu ddp ddp/bucket ddp/comm ddp/comm/reduce",
	"ddp/meet/...":   "ddp/meet ddp/meet/... ddp/launch internal/procfs", // rendezvous: knows no collective
	"ddp/meet/pmix":  "ddp/launch npu/solib",                             // it loads a library
	"ddp/comm":       "npu",
	"ddp/comm/...":   "npu npu/... ddp/comm ddp/comm/...",
	"ddp/comm/tcp":   "npu ddp/comm ddp/comm/... ddp/launch ddp/meet ddp/meet/wire",
	"ddp/comm/nodes": "npu ddp/comm ddp/comm/... ddp/meet",
	"ddp/comm/link":  "",
	"ddp/launch":     "internal/cgroup internal/procfs",
	"ddp/launch/...": "ddp/launch ddp/launch/... internal/...",
	"ddp":            "npu ddp/bucket ddp/comm ddp/schedule ddp/comm/link",

	"deploy/release": "internal/notices",

	"optim": "npu",

	"train/data/...":              "npu train/data/... train/foreign internal/usercache",
	"train/data/images/baseline":  "", // pure: bytes in, pixels out
	"train/data/images/turbojpeg": "npu/solib",
	"train/data/text":             "npu train/data/... train/checkpoint/safetensors train/foreign", // it memory-maps shards with the same code
	"train/dirlock":               "internal/procfs train/foreign",
	"train/foreign":               "",
	"train/generate":              "npu graph graph/models/llama",
	"train/confusion":             "", // pure: counts, tables and a picture of them
	"train/predict":               "npu npu/tune ddp/launch graph graph/models graph/plan train train/checkpoint train/data/images",
	"train/checkpoint/...":        "optim train/checkpoint/... train/foreign internal/amount",
	"train/checkpoint/llamafile":  "graph/models/llama train/checkpoint/... train/foreign",
	"train/telemetry":             "ddp/launch train/foreign internal/amount",
	"train":                       "npu npu/tune ddp/... optim graph graph/op graph/plan train/... internal/amount", // devices and models are interfaces here

	"recipes":          "ddp/launch train/foreign graph/models graph/models/...", // whose families register their sections
	"recipes/data":     "train/data",
	"recipes/assemble": "npu ddp/... optim graph/... train/... recipes recipes/data internal/amount",

	"cmd/...":      "npu/... ddp/... optim graph/... train/... recipes/... internal/...",
	"examples/...": "npu/... ddp/... optim graph/... train/... recipes/...",
	"bench/...":    "npu/... ddp/... optim graph/... train/... recipes/... bench/shapes",
	"internal/...": "",
}

// covers reports whether a pattern matches a package.
func covers(pattern, pkg string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == base || strings.HasPrefix(pkg, base+"/")
	}
	return pattern == pkg
}

// rule returns the entry of arrows for a package.
func rule(pkg string) (allowed []string, ok bool) {
	best := ""
	for p := range arrows {
		if covers(p, pkg) && (best == "" || len(p) > len(best) || p == pkg) && best != pkg {
			best = p
		}
	}
	return strings.Fields(arrows[best]), best != ""
}

// pkg is the output of go list for a package.
type pkg struct {
	ImportPath   string
	Name         string
	Dir          string
	Imports      []string
	GoFiles      []string
	CgoFiles     []string
	TestGoFiles  []string
	XTestGoFiles []string
}

// name is the path within the module.
func (p pkg) name() string { return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/") }

// list runs go list over the module.
func list(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Name,Dir,Imports,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles", module+"/...").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}

func TestImportArrows(t *testing.T) {
	for _, p := range list(t) {
		allowed, ok := rule(p.name())
		if !ok {
			t.Errorf("%s is not listed in arrows", p.name())
			continue
		}
		for _, i := range p.Imports {
			in, ours := strings.CutPrefix(i, module+"/")
			if ours && !slices.ContainsFunc(allowed, func(a string) bool { return covers(a, in) }) {
				t.Errorf("%s must not import %s", p.name(), in)
			}
		}
	}
}

// Gorgonia stays behind the graph package, cobra in the commands, and so on: using a library elsewhere needs a decision record.
func TestWhoUsesWhichModule(t *testing.T) {
	homes := map[string]string{
		"gorgonia.org/":              "graph",
		"github.com/spf13/cobra":     "cmd/gotrain",
		"github.com/spf13/pflag":     "cmd/gotrain",
		"github.com/BurntSushi/toml": "recipes",
		"github.com/chewxy/hm":       "graph",
		"golang.org/x/sys/":          "*",
		"golang.org/x/sync/":         "*",
		"golang.org/x/term":          "*",
	}
	for _, p := range list(t) {
		for _, i := range p.Imports {
			if first, _, _ := strings.Cut(i, "/"); !strings.Contains(first, ".") || strings.HasPrefix(i, module) {
				continue
			}
			home, known := "", false
			for prefix, h := range homes {
				if strings.HasPrefix(i, prefix) {
					home, known = h, true
				}
			}
			if !known {
				t.Errorf("%s imports %s: a new dependency needs an entry here and a reason in docs/decisions", p.name(), i)
			} else if home != "*" && home != p.name() {
				t.Errorf("%s imports %s, which belongs to %s", p.name(), path.Dir(i), home)
			}
		}
	}
}

func TestRule(t *testing.T) {
	for name, want := range map[string]string{
		"npu": "", "npu/ref": "npu npu/kind npu/queue", "npu/cpu/kern": "npu npu/...",
		"graph": "npu npu/kind graph/op graph/plan",
		"ddp":   "npu ddp/bucket ddp/comm ddp/schedule ddp/comm/link",
	} {
		got, ok := rule(name)
		if !ok || strings.Join(got, " ") != want {
			t.Errorf("%s: %q %v, want %q", name, got, ok, want)
		}
	}
	if _, ok := rule("elsewhere"); ok {
		t.Error("a package without an entry was accepted")
	}
}
