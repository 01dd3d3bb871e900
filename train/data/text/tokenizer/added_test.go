package tokenizer_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// vectorsVar names a file that testdata/make_added.py wrote, for a larger comparison than the one in testdata.
const vectorsVar = "GOTRAIN_TOKENIZER_VECTORS"

// Added tokens with all flags are found as Hugging Face's library finds them, over all pre-tokenizers and normalizers.
func TestAddedTokens(t *testing.T) {
	path := "testdata/added.json"
	if p := os.Getenv(vectorsVar); p != "" {
		path = p
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Variants []struct {
			variant
			Rows []struct {
				row
				Plain []int32 `json:"plain"` // with text that spells special tokens as plain text; where it differs
			} `json:"rows"`
		}
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	rows, bad := 0, 0
	for _, v := range all.Variants {
		tok := parse(t, patched(t, v.File, v.Patch)).(tokenizer.SpecialEncoder)
		differs := func(what string, text string, got, want any) {
			if bad++; bad <= 5 {
				t.Errorf("%s %s: %q: %s %v, want %v\nnormalizer %s, pre_tokenizer %s, decoder %s, model %s\nadded_tokens %s",
					v.File, v.Name, text, what, got, want, v.Patch["normalizer"], v.Patch["pre_tokenizer"], v.Patch["decoder"], v.Patch["model"], v.Patch["added_tokens"])
			}
		}
		for _, r := range v.Rows {
			rows++
			if got := tok.EncodeSpecial(nil, r.Text); !slices.Equal(got, r.IDs) {
				differs("EncodeSpecial", r.Text, got, r.IDs)
			}
			if r.Plain == nil {
				r.Plain = r.IDs
			}
			if got := tok.Encode(nil, r.Text); !slices.Equal(got, r.Plain) {
				differs("Encode", r.Text, got, r.Plain)
			}
			if r.Decoded != nil {
				if got := string(tok.Decode(nil, r.IDs)); got != *r.Decoded {
					differs("Decode", r.Text, got, *r.Decoded)
				}
			}
		}
	}
	if rows < 2000 {
		t.Errorf("only %d texts", rows)
	}
	t.Logf("%d tokenizers, %d texts, %d differences", len(all.Variants), rows, bad)
}
