package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The committed shims are those that the table gives.
func TestCommittedFilesAreUpToDate(t *testing.T) {
	for name, want := range Files() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the table gives: go run ./npu/acl/cann/gen -o npu/acl/cann", name)
		}
	}
}
