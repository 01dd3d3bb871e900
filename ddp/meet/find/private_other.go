//go:build !unix

package find

import (
	"fmt"
	"os"
)

// private checks the kind of a file only: this system does not have Unix owners and modes.
func private(file *os.File, _ string) error {
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", file.Name())
	}
	return nil
}

func privateFolder(path string) (string, error) { return path, os.MkdirAll(path, 0o700) }

func openPrivate(path string) (*os.File, error) { return os.Open(path) }
