package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Processes whose devices keep their memory from the host train as those in host memory do: same weights, same evaluation.
func TestRunInSeparateMemory(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	weights := map[string]string{}
	for _, memory := range []string{"host", "strict"} {
		to := filepath.Join(dir, memory)
		out, err := program(t, "run", recipe, "-n", "2", "--set", "run.output_dir="+to, "--set", "train.device_options=memory="+memory,
			"--set", "train.state_check_every_steps=2", "--set", "train.clip_norm=1").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got := strings.Contains(string(out), "gradients travel through host memory"); got != (memory == "strict") {
			t.Errorf("%s: the transport of device memory is announced: %v\n%s", memory, got, out)
		}
		b, err := os.ReadFile(filepath.Join(to, "checkpoints", "step-00000004", "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		weights[memory] = string(b)
	}
	if weights["host"] != weights["strict"] {
		t.Error("the weights differ")
	}
}
