//go:build !unix

package safetensors

import "os"

// mapFile reads the file where mapping is not to be had.
func mapFile(path string) ([]byte, func() error, error) {
	raw, err := os.ReadFile(path)
	return raw, func() error { return nil }, err
}
