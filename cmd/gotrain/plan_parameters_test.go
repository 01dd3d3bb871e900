package main

import (
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

// The names that patterns are matched against are listed, with what becomes of each; a pattern that matches nothing says what there is.
func TestPlanListsParameters(t *testing.T) {
	args := []string{"plan", "quickstart", "--parameters", "--set", "train.device=ref", "--set", "model.freeze=conv1.* layer1.*",
		"--set", "optim.weight_decay=0.5"}
	out, errs, code := cli(t, args...)
	lines := map[string]string{}
	for _, l := range strings.Split(out, "\n") {
		if f := strings.Fields(l); len(f) > 0 {
			lines[f[0]] = strings.Join(f[1:], " ")
		}
	}
	if code != 0 || !strings.Contains(lines["conv1.weight"], "frozen - model.freeze") || lines["bn1.bias"] != "[16] x 1 0 -" ||
		lines["fc.weight"] != "[10 128] x 1 0.5 -" {
		t.Errorf("exit code %d, %s\n%s", code, errs, out)
	}
	for pattern, want := range map[string]string{
		"model.freeze=layr1.*": "matches no parameter\nhint: the network has conv1.* bn1.* layer1.* layer2.* layer3.* layer4.* fc.*; gotrain plan --parameters",
		"model.freeze=*":       "no trainable parameter\nhint: ",
	} {
		if _, errs, code := cli(t, append(args, "--set", pattern)...); code != launch.ExitRecipe || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", pattern, code, errs)
		}
	}
}
