package usercache_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/internal/usercache"
)

func ExamplePlaces() {
	cache, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(cache)
	os.Setenv("XDG_CACHE_HOME", cache)
	defer os.Unsetenv("XDG_CACHE_HOME")

	dir, err := usercache.Places("data")[0].Make()
	name, _ := filepath.Rel(cache, dir)
	fmt.Println(filepath.ToSlash(name), err)
	// Output: gotrain/data <nil>
}
