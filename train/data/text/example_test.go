package text_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/text"
	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// Two documents become windows of 8 tokens that keep them apart.
func Example() {
	tok, err := tokenizer.Open("tokenizer/testdata/tok512.bin")
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "text")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "stories.txt")
	if err := os.WriteFile(file, []byte("Once upon a time\n\nThe end of it all\n"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	c, _, err := text.FromText(context.Background(), []string{file}, text.Options{Tokenizer: tok, Documents: text.Documents{Separator: text.ByBlank}, BOS: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	src, err := text.NewSource(c, text.SourceOptions{Seq: 8, Documents: true, Pad: true, Vocab: tok.Vocab()})
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := data.NewLoader(src, data.Options{Batch: 1, Tail: data.Short, Epochs: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	b, err := l.Next(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(src.Len(), "windows of", src.Fields())
	fmt.Println(b.I32(0))
	fmt.Println(b.I32(1))
	fmt.Println(b.I32(2))
	b.Release()
	// Output:
	// 2 windows of [tokens i32[8] targets i32[8] segments i32[8]]
	// [1 403 407 261 378 1 291 344]
	// [403 407 261 378 -100 291 344 264]
	// [0 0 0 0 0 1 1 1]
}
