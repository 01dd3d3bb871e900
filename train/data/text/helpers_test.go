package text_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/train/data/text"
	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

var openTok512 = sync.OnceValues(func() (tokenizer.Tokenizer, error) { return tokenizer.Open("tokenizer/testdata/tok512.bin") })

func tok512(t testing.TB) tokenizer.Tokenizer {
	t.Helper()
	tok, err := openTok512()
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// write makes a file of a temporary directory.
func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// stories makes n documents of different lengths.
func stories(n int) []string {
	var out []string
	for i := range n {
		out = append(out, strings.TrimSpace(strings.Repeat(fmt.Sprintf("Story %d of a small dog who ran to the park. ", i), 1+i%7)))
	}
	return out
}

// ids reads a whole corpus.
func ids(t testing.TB, c *text.Corpus) []int32 {
	t.Helper()
	out := make([]int32, c.Len())
	if err := c.Read(out, 0); err != nil {
		t.Fatal(err)
	}
	return out
}

func wantError(t testing.TB, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want one with %q", err, part)
	}
}
