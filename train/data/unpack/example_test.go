package unpack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/gotrain/gotrain/train/data/unpack"
)

func ExampleDir() {
	cache, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(cache)
	os.Setenv("XDG_CACHE_HOME", cache)
	defer os.Unsetenv("XDG_CACHE_HOME")

	dir, err := unpack.Dir("words", fstest.MapFS{"train.txt": {Data: []byte("to be or not to be")}})
	if err != nil {
		panic(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "train.txt"))
	fmt.Println(string(text), err)
	// Output: to be or not to be <nil>
}
