package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

// MarkBest names the checkpoint that rotation keeps, however old it becomes, until another one is named. The file "best" in the root has its name.
func (s *Store) MarkBest(name string) error {
	if _, err := s.manifest(name); err != nil {
		return fmt.Errorf("checkpoint: %s: %w", filepath.Join(s.root, name), err)
	}
	if err := s.point(bestFile, name); err != nil {
		return fmt.Errorf("checkpoint: %w", named(err))
	}
	return nil
}

// Best returns the name that MarkBest has stored; "" if there is none, or if what the file holds is no name.
func (s *Store) Best() (string, error) {
	var raw []byte
	err := again(func() (err error) {
		raw, err = s.readSmall(filepath.Join(s.root, bestFile))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("checkpoint: which one is the best: %w", named(err))
	}
	name := strings.TrimSpace(string(raw))
	if _, _, ok := parseName(name); !ok {
		return "", nil
	}
	return name, nil
}

// Follow returns the folder of the checkpoint that a pointer file names, if path is one: the files "best" and "latest" in a folder of checkpoints. Any other
// path is returned as it is.
func Follow(path string) string {
	if base := filepath.Base(path); base != bestFile && base != latestFile {
		return path
	}
	f, err := OS{}.Open(path)
	if err != nil {
		return path
	}
	defer f.Close()
	raw := make([]byte, min(f.Size(), 64))
	if n, err := f.ReadAt(raw, 0); n < len(raw) || err != nil && !errors.Is(err, io.EOF) {
		return path
	}
	name := strings.TrimSpace(string(raw))
	if _, _, ok := parseName(name); !ok {
		return path
	}
	return filepath.Join(filepath.Dir(path), name)
}
