//go:build !unix

package text

import (
	"io"
	"os"
)

// mapFile reads the file where there is no mmap.
func mapFile(f *os.File, n int64) ([]byte, func() error, error) {
	raw := make([]byte, n)
	if _, err := io.ReadFull(f, raw); err != nil {
		return nil, nil, err
	}
	return raw, func() error { return nil }, nil
}
