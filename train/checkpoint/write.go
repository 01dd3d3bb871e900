package checkpoint

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// tee writes to a file and updates its checksum.
type tee struct {
	ctx context.Context
	f   File
	sum hash.Hash
	n   int64
}

func (t *tee) Write(p []byte) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := t.f.Write(p)
	t.sum.Write(p[:n])
	t.n += int64(n)
	return n, err
}

// write makes one durable file and returns its manifest entry.
func (s *Store) write(ctx context.Context, path string, fill func(io.Writer) error) (e Entry, err error) {
	f, err := s.fs.Create(path)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t := &tee{ctx: ctx, f: f, sum: sha256.New()}
	w := bufio.NewWriterSize(t, 256<<10)
	if err := fill(w); err != nil {
		return e, err
	}
	if err := w.Flush(); err != nil {
		return e, err
	}
	if err := f.Sync(); err != nil {
		return e, fmt.Errorf("sync: %w", err)
	}
	return Entry{Size: t.n, SHA256: hex.EncodeToString(t.sum.Sum(nil))}, nil
}

// Prepare makes the root and its parents, durably. Save does so too; Prepare is for callers that need the directory earlier.
func (s *Store) Prepare() error {
	var made []string
	for dir := s.root; ; dir = filepath.Dir(dir) {
		_, err := s.fs.ReadDir(dir)
		if err == nil || dir == filepath.Dir(dir) {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		made = append(made, dir)
	}
	if len(made) == 0 {
		return nil
	}
	if err := s.fs.MkdirAll(s.root); err != nil {
		return err
	}
	for _, dir := range slices.Backward(made) {
		if err := s.fs.SyncDir(filepath.Dir(dir)); err != nil {
			return fmt.Errorf("sync %s: %w", filepath.Dir(dir), err)
		}
	}
	return nil
}

// sweep removes what a crash left. It must not stop a save: the next one retries what cannot be removed.
func (s *Store) sweep() {
	names, err := s.names()
	if err != nil {
		return
	}
	for _, name := range names {
		if staleRE.MatchString(name) {
			s.fs.RemoveAll(filepath.Join(s.root, name))
		}
	}
}

// checkFree compares the size of the checkpoint with the free space, so that a save does not first fill the disk.
func (s *Store) checkFree(c Content, state []byte) error {
	need := int64(len(state)) + 64<<10 // manifest, pointer, directory blocks
	for _, f := range c.Files {
		n, err := safetensors.Size(f.Tensors, f.Metadata)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		need += n
	}
	need += need / 50 // blocks of the file system
	have, err := s.fs.Free(s.root)
	if err != nil || have < 0 {
		return nil // unknown: the writes will fail if it is full
	}
	if have < need {
		return fmt.Errorf("%w: it takes %s, but %s are free", ErrNoSpace, amount.Bytes(need), amount.Bytes(have))
	}
	return nil
}
