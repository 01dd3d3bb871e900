package tokenizer_test

import (
	"fmt"

	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// A vocabulary of 512 tokens, of the model stories260K.
func Example() {
	tok, err := tokenizer.Open("testdata/tok512.bin")
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := tok.Encode([]int32{tok.BOS()}, "Once upon a time")
	for _, id := range ids {
		fmt.Print(tok.(tokenizer.Piecer).Piece(id), " ")
	}
	fmt.Println(ids)
	fmt.Printf("%q\n", tok.Decode(nil, ids))
	// Output:
	// <s> ▁Once ▁upon ▁a ▁time [1 403 407 261 378]
	// "Once upon a time"
}

// The bytes of é are two tokens here; nothing comes out before the second.
func ExampleStream() {
	tok, err := tokenizer.Open("testdata/tok512.bin")
	if err != nil {
		fmt.Println(err)
		return
	}
	s := tokenizer.NewStream(tok)
	for _, id := range tok.Encode(nil, "a 😀") {
		fmt.Printf("%q ", s.Push(nil, id))
	}
	fmt.Printf("%q\n", s.Flush(nil))
	// Output: "a" " " "" "" "" "😀" ""
}
