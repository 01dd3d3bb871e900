package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/data/text"
)

func TestTokenize(t *testing.T) {
	out, errs, code := cli(t, "tokenize", "--help")
	if code != 0 || errs != "" || !strings.Contains(out, "Examples:") {
		t.Errorf("code %d, %s", code, errs)
	}
	golden(t, "help-tokenize.txt", out)

	dir := t.TempDir()
	in := filepath.Join(dir, "stories.jsonl")
	if err := os.WriteFile(in, []byte(strings.Repeat(`{"text":"Once upon a time"}`+"\n", 20)), 0o644); err != nil {
		t.Fatal(err)
	}
	shards := filepath.Join(dir, "shards")
	args := []string{"tokenize", "--tokenizer", "stories260k/tok512.bin", "--out", shards, "--bos", "--json", "text", "--val-fraction", "0.1", in}
	out, errs, code = cli(t, args...)
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %s", code, errs)
	}
	got := regexp.MustCompile(`took .*`).ReplaceAllString(strings.ReplaceAll(out, shards, "DIR"), "took TIME")
	if want := "DIR\n  tokenizer  llama2.c, 512 ids, 8b1167a860dda301\n  text       320 bytes, 3.20 bytes a token\n" +
		"  train      18 documents, 90 tokens, 1 shard\n  val        2 documents, 10 tokens, 1 shard\n  took TIME\n"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	c, err := text.OpenShards(shards, text.Val)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Len() != 10 || c.Documents() != 2 {
		t.Errorf("%d ids of %d documents", c.Len(), c.Documents())
	}
	if _, errs, code = cli(t, args...); code != 64 || !strings.Contains(errs, "already holds shards") {
		t.Errorf("code %d, %s", code, errs)
	}
	if out, errs, code = cli(t, append(args, "--force", "--summary-json")...); code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("code %d, %s, %s", code, errs, out)
	}
}

func TestTokenizeShow(t *testing.T) {
	out, errs, code := cli(t, "tokenize", "--tokenizer", "stories260k/tok512.bin", "--bos", "--special", "--show", "Once upon</s>")
	if want := "      1  \"<s>\"\n    403  \"▁Once\"\n    407  \"▁upon\"\n      2  \"</s>\"\n4 tokens, 13 bytes\ndecoded: \"Once upon\"\n"; code != 0 ||
		errs != "" ||
		out != want {
		t.Errorf("code %d, %s\n got %s\nwant %s", code, errs, out, want)
	}
}

func TestTokenizeErrors(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.txt")
	if err := os.WriteFile(in, []byte("bad \xff"), 0o644); err != nil {
		t.Fatal(err)
	}
	tok := "--tokenizer stories260k/tok512.bin "
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"x", 64, "--tokenizer is missing"},
		{tok, 64, "no inputs"},
		{tok + in, 64, "--out is missing"},
		{tok + "--show a " + in, 64, "no inputs"},
		{tok + "--show a --out " + dir, 64, "none of the others can be"},
		{tok + "--out " + dir + "/o --separator line --json text " + in, 64, "none of the others can be"},
		{tok + "--out " + dir + "/o --val-fraction 0.7 " + in, 64, "from 0 to 0.5"},
		{tok + "--out " + dir + "/o --shard-mb 0 " + in, 64, "from 1 to 8000"},
		{tok + "--out " + dir + "/o --special " + in, 64, "for --show only"},
		{"--tokenizer no-such --out " + dir + "/o " + in, 66, `no data set "no-such"`},
		{"--tokenizer " + in + " --out " + dir + "/o " + in, 66, "unknown kind of tokenizer"},
		{tok + "--out " + dir + "/o " + dir + "/nothing", 66, "no such file"},
		{tok + "--out " + dir + "/o " + in, 66, in + ":1: byte 0xff is not UTF-8"},
	} {
		_, errs, code := cli(t, append([]string{"tokenize"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("tokenize %s: code %d, want %d\n%s\nwant %q", c.args, code, c.code, errs, c.want)
		}
	}
}
