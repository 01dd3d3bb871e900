//go:build unix

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

// What is no regular file is refused at once wherever a file is meant. A verb that waited for a pipe would never return, so the test would not end.
func TestPipesAndDevices(t *testing.T) {
	dir := t.TempDir()
	pipe := func(name ...string) string {
		path := filepath.Join(append([]string{dir}, name...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o666); err != nil {
			t.Skip(err)
		}
		return path
	}
	recipe := filepath.Join(dir, "r.toml")
	if err := os.WriteFile(recipe, []byte("[model]\nname = \"resnet\"\ndepth = 18\nclasses = 2\n[data]\nkind = \"idx\"\nroot = \"idx\"\n"+
		"[run]\nsteps = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	pipe("idx", "train-images-idx3-ubyte")
	pipe("idx", "train-labels-idx1-ubyte")
	pipe("hf", "config.json")
	pipe("hf", "model.safetensors")
	pipe("index", "model.safetensors.index.json")
	pipe("ckpt", "step-00000001", "MANIFEST.json")
	pipe("tok", "tokenizer.json")
	socket := filepath.Join(dir, "s.bin")
	if l, err := net.Listen("unix", socket); err == nil {
		defer l.Close()
	}
	bin := pipe("model.bin")
	for _, args := range [][]string{
		{"inspect", bin}, {"inspect", pipe("a.safetensors")}, {"inspect", filepath.Join(dir, "hf")}, {"inspect", filepath.Join(dir, "index")},
		{"inspect", filepath.Join(dir, "ckpt")}, {"inspect", filepath.Join(dir, "ckpt", "step-00000001")}, {"inspect", "/dev/zero"}, {"inspect", socket},
		{"generate", bin}, {"generate", "stories260k", "--prompts", pipe("prompts")}, {"generate", "stories260k", "--tokenizer", filepath.Join(dir, "tok")},
		{"generate", "stories260k", "--config", filepath.Join(dir, "hf", "config.json")},
		{"eval", filepath.Join(dir, "ckpt")}, {"export", "--from", bin, "--to", filepath.Join(dir, "out"), "--format", "hf"},
		{"import", "tfjs-resnet50", pipe("a.tgz"), filepath.Join(dir, "out.safetensors")},
		{"import", "tfjs-resnet50", "/dev/zero", filepath.Join(dir, "out.safetensors")},
		{"tokenize", "--tokenizer", pipe("t.json"), "--show", "x"}, {"tokenize", "--tokenizer", "stories260k", "--out", filepath.Join(dir, "shards"), pipe("text")},
		{"validate", pipe("p.toml")}, {"run", pipe("q.toml")}, {"validate", recipe}, {"run", recipe, "--set", "run.output_dir=" + filepath.Join(dir, "o")},
		{"run", recipe, "--set", "model.init_from=" + bin, "--set", "data.kind=synthetic", "--set", "data.image_size=8", "--set", "model.width=2",
			"--set", "run.output_dir=" + filepath.Join(dir, "o"), "--set", "train.device=ref"},
	} {
		_, stderr, code := cli(t, args...)
		if code == 0 || code == launch.ExitInternal || !strings.Contains(stderr, "not a regular file") && !strings.Contains(stderr, "has no tokenizer") {
			t.Errorf("%v: exit code %d: %s", args, code, stderr)
		}
	}
}

// Names that a terminal would obey are shown as what they are, in messages, tables and JSON.
func TestNamesDoNotReachTheTerminalRaw(t *testing.T) {
	const evil = "\x1b]0;owned\x07\x1b[2Jx\u009b31m\u202e"
	dir := t.TempDir()
	header := fmt.Sprintf(`{%q:{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, "e")
	header = strings.Replace(header, `"e"`, `"\u001b]0;owned\u0007\u001b[2Jx\u009b31m\u202e"`, 1)
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, uint64(len(header))); err != nil {
		t.Fatal(err)
	}
	b.WriteString(header)
	b.Write(make([]byte, 4))
	file := filepath.Join(dir, evil+".safetensors")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{
		{"inspect", file, "--tensors"}, {"inspect", file, "--json"}, {"inspect", file + "none"}, {"generate", file}, {"validate", filepath.Join(dir, evil)},
		{"run", filepath.Join(dir, evil)}, {"tokenize", "--tokenizer", filepath.Join(dir, evil), "--show", evil}, {"eval", filepath.Join(dir, evil)}, {evil},
		{"inspect", "--" + evil},
	} {
		stdout, stderr, _ := cli(t, args...)
		if all := stdout + stderr; strings.ContainsAny(all, "\x1b\x07\u009b\u202e") || !strings.Contains(all, "owned") {
			t.Errorf("%q: %q", args, all)
		}
	}
}
