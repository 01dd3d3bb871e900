package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

func TestGenerateHelp(t *testing.T) {
	out, errs, code := cli(t, "generate", "--help")
	if code != 0 || errs != "" || !strings.Contains(out, "Examples:") {
		t.Errorf("code %d, %s", code, errs)
	}
	golden(t, "help-generate.txt", out)
}

// story is how llama2.c's own test begins.
const story = "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, red ball."

// The same text from the Hugging Face form, and from exports to llama2.c and to Meta's names.
func TestGenerateFromEveryFormat(t *testing.T) {
	dir := t.TempDir()
	tok := filepath.Join(stories, "tok512.bin")
	bin, meta := filepath.Join(dir, "s.bin"), filepath.Join(dir, "meta")
	for _, args := range [][]string{{"--format", "llama2c", "--to", bin}, {"--format", "meta", "--to", meta}} {
		if out, errs, code := cli(t, append([]string{"export", "--from", stories}, args...)...); code != 0 {
			t.Fatalf("code %d\n%s%s", code, out, errs)
		}
	}
	whole := ""
	for _, model := range []string{stories, bin, meta} {
		out, errs, code := cli(t, "generate", model, "--tokenizer", tok, "-t", "0", "-n", "200", "--threads", "1")
		if code != 0 || !strings.HasPrefix(out, story) || !strings.Contains(errs, "tok/s") {
			t.Errorf("%s: code %d\n%s%s", model, code, out, errs)
		}
		if whole == "" {
			whole = out
		}
		if out != whole {
			t.Errorf("%s writes another text:\n%s", model, out)
		}
	}
	if !strings.HasSuffix(whole, "so she\n") {
		t.Errorf("200 tokens end with %q", whole[len(whole)-20:])
	}
}

func TestGenerateSeveral(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prompts.txt")
	if err := os.WriteFile(file, []byte("Once upon a time\n\nOnce upon a time, there was\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errs, code := cli(t, "generate", stories, "--prompts", file, "-t", "0", "-n", "12", "--json", "--threads", "1")
	if code != 0 {
		t.Fatalf("code %d\n%s", code, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines:\n%s", len(lines), out)
	}
	for _, line := range lines {
		var v struct {
			Prompt string  `json:"prompt"`
			Text   string  `json:"text"`
			Tokens []int32 `json:"tokens"`
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		if len(v.Tokens) != 12 || !strings.HasPrefix(story, v.Prompt+v.Text) {
			t.Errorf("%+v", v)
		}
	}
	out, _, code = cli(t, "generate", stories, "-p", "Once upon", "-p", "Once", "-t", "0", "-n", "3", "--no-echo", "--threads", "1")
	if code != 0 || out != " a time, the\n---\n upon a time\n" && strings.Count(out, "---") != 1 {
		t.Errorf("code %d, %q", code, out)
	}
}

// A profile accounts for the time of a token, on standard error, and leaves the text alone.
func TestGenerateProfile(t *testing.T) {
	args := []string{"generate", stories, "-t", "0", "-n", "50", "--threads", "1"}
	plain, _, _ := cli(t, args...)
	out, errs, code := cli(t, append(args, "--profile")...)
	if code != 0 || out != plain {
		t.Fatalf("code %d\n%s%s", code, out, errs)
	}
	for _, want := range []string{"\nkernel ", "\nmatmul", "\nattention_cached  5 ", "\nbetween kernels ", "\na token takes ", "(medians of 49 tokens)\n"} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in\n%s", want, errs)
		}
	}
	if strings.Contains(plain, "kernel") {
		t.Errorf("a profile without being asked:\n%s", plain)
	}
	if out, errs, code = cli(t, "generate", stories, "-t", "0", "-n", "1", "--threads", "1", "--profile"); code != 0 || strings.Contains(errs, "kernel") {
		t.Errorf("the only token comes with the prompt: code %d\n%s%s", code, out, errs)
	}
}

func TestGenerateErrors(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "s.bin")
	if out, errs, code := cli(t, "export", "--from", stories, "--format", "llama2c", "--to", bin); code != 0 {
		t.Fatalf("%s%s", out, errs)
	}
	empty := filepath.Join(dir, "empty.txt")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"nowhere", "nowhere", launch.ExitNoInput},
		{bin, "--tokenizer", launch.ExitNoInput},
		{stories + " --tokenizer ../../train/data/text/tokenizer/testdata/mistral-v1.model", "32000 tokens, but the model's vocabulary has 512", launch.ExitNoInput},
		{stories + " --prompts nowhere.txt", "nowhere.txt", launch.ExitNoInput},
		{stories + " --prompts " + empty, "has no prompts\nhint: put one on each line", launch.ExitNoInput},
		{stories + " --dtype f64", "f32, bf16 or f16", launch.ExitUsage},
		{stories + " --tokens 0", "at least 1", launch.ExitUsage},
		{stories + " --room 513", "more than the context of the model, 512", launch.ExitUsage},
		{stories + " --room 3 --prompt Once-upon-a-time", "which is more than --room 3", launch.ExitUsage},
		{stories + " --prompt " + strings.Repeat("Once-", 300), "the context of the model is 512\nhint: shorten", launch.ExitUsage},
		{stories + " --threads -3", "--threads -3: at least 1", launch.ExitUsage},
		{stories + " --device gpu", "auto, npu, cpu or ref", launch.ExitUsage},
		{"nowhere", "or other weights", launch.ExitNoInput},
		{stories + " --top-p 1.5 -t -1", "temperature is -1", launch.ExitUsage},
	} {
		out, errs, code := cli(t, append([]string{"generate"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("%s: code %d, want %d\n%s%s", c.args, code, c.code, out, errs)
		}
	}
}
