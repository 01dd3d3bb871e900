package tokenizer_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// variant is one of our two small tokenizer.json with some parts replaced, and what Hugging Face's library makes of texts with it.
type variant struct {
	File  string                     `json:"file"`
	Name  string                     `json:"name"`
	Patch map[string]json.RawMessage `json:"patch"`
	Rows  []row                      `json:"rows"`
}

// patched replaces parts of a tokenizer.json; of the model, only the fields that the patch has.
func patched(t testing.TB, file string, patch map[string]json.RawMessage) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var parts, model, change map[string]json.RawMessage
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	must(json.Unmarshal(raw, &parts))
	for k, v := range patch {
		if k == "model" {
			must(json.Unmarshal(parts[k], &model))
			must(json.Unmarshal(v, &change))
			maps.Copy(model, change)
			v, err = json.Marshal(model)
			must(err)
		}
		parts[k] = v
	}
	raw, err = json.Marshal(parts)
	must(err)
	return raw
}

func TestHuggingFaceVariants(t *testing.T) {
	raw, err := os.ReadFile("testdata/variants.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Variants []variant }
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Variants) < 15 {
		t.Fatalf("only %d variants", len(all.Variants))
	}
	for _, v := range all.Variants {
		t.Run(v.Name, func(t *testing.T) { check(t, parse(t, patched(t, v.File, v.Patch)), v.Rows, true) })
	}
}

// What a file asks for and we do not do is named.
func TestHuggingFaceErrors(t *testing.T) {
	for _, c := range []struct{ file, part, value, want string }{
		{"bytelevel.json", "normalizer", `{"type":"NFC"}`, `normalizer: type "NFC" is not supported`},
		{"bytelevel.json", "normalizer", `{"type":"Sequence","normalizers":[{"type":"Replace","pattern":{"String":"a"},"content":"b"}]}`, "normalizer: 0: only a Replace"},
		{"bytelevel.json", "pre_tokenizer", `{"type":"Whitespace"}`, `pre_tokenizer: type "Whitespace"`},
		{"bytelevel.json", "pre_tokenizer", `{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\w+"},"behavior":"Isolated"},{"type":"ByteLevel","use_regex":false,"add_prefix_space":false}]}`, `unknown regular expression "\\w+"`},
		{"bytelevel.json", "pre_tokenizer", `{"type":"Split","pattern":{"String":" "},"behavior":"Isolated"}`, "Split without a regular expression"},
		{"bytelevel.json", "pre_tokenizer", `null`, "ignore_merges without ByteLevel"},
		{"bytelevel.json", "decoder", `{"type":"WordPiece"}`, `decoder: type "WordPiece"`},
		{"bytelevel.json", "model", `{"type":"Unigram"}`, `model type "Unigram"; only BPE`},
		{"bytelevel.json", "model", `{"dropout":0.1}`, "dropout"},
		{"bytelevel.json", "model", `{"end_of_word_suffix":"</w>"}`, "end_of_word_suffix"},
		{"bytelevel.json", "model", `{"unk_token":"<none>"}`, `unk_token "<none>" is missing`},
		{"bytelevel.json", "model", `{"merges":["a b c"]}`, "want two tokens"},
		{"bytelevel.json", "model", `{"merges":[["a"]]}`, "a merge has 1 tokens"},
		{"bytelevel.json", "model", `{"merges":["zzzz a"]}`, "merge 0"},
		{"bytelevel.json", "model", `{"vocab":{"a":0}}`, "byte 0x00"},
		{"bytelevel.json", "model", `{"vocab":{}}`, "no vocab"},
		{"bytelevel.json", "model", `{"vocab":{"a":-1}}`, "has id -1"},
		{"bytelevel.json", "model", `{"vocab":{"a":2000000}}`, "the greatest id is 2000000"},
		{"bytelevel.json", "model", `{"vocab":{"a":1,"b":1}}`, "the same id 1"},
		{"bytelevel.json", "added_tokens", `[{"id":5,"content":"no such"}]`, `"no such" has id 5`},
		{"bytelevel.json", "added_tokens", `[{"id":2500,"content":""}]`, "token 2500 is empty"},
		{"characters.json", "model", `{"ignore_merges":true}`, "ignore_merges without ByteLevel"},
	} {
		_, err := tokenizer.Parse(patched(t, c.file, map[string]json.RawMessage{c.part: json.RawMessage(c.value)}))
		wantError(t, err, c.want)
	}
}

func TestHuggingFaceEnds(t *testing.T) {
	dir := t.TempDir()
	save := func(name string, raw []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	save("tokenizer.json", patched(t, "bytelevel.json", nil))
	if tok := open(t, dir); tok.BOS() != 2500 || tok.EOS() != 2501 {
		t.Errorf("bos %d, eos %d", tok.BOS(), tok.EOS())
	}
	save("tokenizer_config.json", []byte(`{"bos_token":{"content":"</s>"},"eos_token":"<s>"}`))
	if tok := open(t, dir); tok.BOS() != 2501 || tok.EOS() != 2500 {
		t.Errorf("bos %d, eos %d", tok.BOS(), tok.EOS())
	}
	save("tokenizer_config.json", []byte(`{"bos_token":`))
	_, err := tokenizer.Open(dir)
	wantError(t, err, "tokenizer_config.json")
}
