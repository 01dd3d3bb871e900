package checkpoint

import (
	"errors"
	"fmt"
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
	name, err := s.pointed(bestFile)
	if err != nil {
		return "", fmt.Errorf("checkpoint: which one is the best: %w", named(err))
	}
	return name, nil
}

// pointed reads what point has written: the name of a checkpoint, or "".
func (s *Store) pointed(file string) (string, error) {
	var raw []byte
	err := again(func() (err error) {
		raw, err = s.readSmall(filepath.Join(s.root, file))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	name := strings.TrimSpace(string(raw))
	if _, _, ok := parseName(name); !ok {
		return "", nil
	}
	return name, nil
}
