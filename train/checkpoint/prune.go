package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// Prune removes all but the newest checkpoints, as many as the store keeps, and returns the names of the removed ones. The one that MarkBest has named
// stays too, and does not count. A checkpoint known to be
// damaged does not count as kept; it is removed too once there are enough good ones. One that cannot be read for another reason stays. Save calls
// Prune.
func (s *Store) Prune(ctx context.Context) ([]string, error) {
	if s.keep == 0 {
		return nil, nil
	}
	infos, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	best, err := s.Best()
	if err != nil {
		return nil, err // which one to keep is not known for now
	}
	good := 0
	for _, in := range infos {
		if in.Err == nil && in.Name != best {
			good++
		}
	}
	if good < s.keep {
		return nil, nil
	}
	var removed []string
	var errs []error
	kept := 0
	for _, in := range infos {
		if in.Name == best {
			continue
		}
		if in.Err == nil && kept < s.keep {
			kept++
			continue
		}
		if in.Err != nil && !errors.Is(in.Err, ErrDamaged) {
			continue // of a newer format, or temporarily unreadable: keep it
		}
		if err := s.remove(in.Name); err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", in.Path, err))
			continue
		}
		removed = append(removed, in.Name)
	}
	return removed, errors.Join(errs...)
}

// remove first moves the name away, in one operation: a removal that a crash cuts short then leaves no half checkpoint, only a leftover to sweep.
func (s *Store) remove(name string) error {
	path := filepath.Join(s.root, name)
	if err := s.fs.RemoveAll(path + ".tmp"); err != nil {
		return err
	}
	if err := s.fs.Rename(path, path+".tmp"); err != nil {
		return err
	}
	delete(s.broken, name)
	return s.fs.RemoveAll(path + ".tmp")
}
