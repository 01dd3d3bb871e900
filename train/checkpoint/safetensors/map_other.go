//go:build !unix

package safetensors

import "os"

// Map reads a whole file, where mapping is not to be had.
func Map(path string) ([]byte, func() error, error) {
	raw, err := os.ReadFile(path)
	return raw, func() error { return nil }, err
}
