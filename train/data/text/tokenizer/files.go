package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Files lists what Open reads at path: the tokenizer's file, and the configuration beside it where there is one. Copied to another folder
// they are the same tokenizer.
func Files(path string) ([]string, error) {
	st, err := os.Stat(path)
	if err == nil && st.IsDir() {
		path, err = find(path)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	raw, err := readLimited(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	out := []string{path}
	if beside := filepath.Join(filepath.Dir(path), "tokenizer_config.json"); bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		_, err := os.Stat(beside)
		switch {
		case err == nil:
			out = append(out, beside)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("tokenizer: %w", err)
		}
	}
	return out, nil
}
