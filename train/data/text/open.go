package text

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gotrain/gotrain/train/foreign"
)

// The names of splits.
const (
	Train = "train"
	Val   = "val"
)

// OpenShards maps token shards as one corpus. The path is a directory written by gotrain tokenize, of which it opens the given split ("train", "val");
// a directory of llm.c's shards, of which it opens those with the split in their name; or a file or a pattern of foreign.Glob, of which it opens all, in
// alphabetical order. A missing, damaged or truncated shard is an error. Close the corpus when it is no longer used.
func OpenShards(path, split string) (_ *Corpus, err error) {
	var names []string
	var m *Manifest
	if st, e := os.Stat(path); e == nil && st.IsDir() {
		if m, err = ReadManifest(path); err != nil {
			return nil, err
		}
		names, err = shardsOf(path, split, m)
	} else if names, err = matches(path); err == nil {
		m, err = ReadManifest(filepath.Dir(names[0]))
	}
	if err != nil {
		return nil, err
	}
	c := &Corpus{name: path, info: Info{BOS: -1, EOS: -1}}
	if split != "" {
		c.name = path + " (" + split + ")"
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, name := range names {
		k, unmap, err := openShard(name)
		if err != nil {
			return nil, err
		}
		c.unmap = append(c.unmap, unmap)
		c.add(k)
	}
	c.maxID = sync.OnceValues(c.scanMax)
	if m != nil {
		err = c.describe(m, split)
	}
	return c, err
}

// shardsOf lists the shards of a split in a directory.
func shardsOf(dir, split string, m *Manifest) ([]string, error) {
	if m != nil {
		s := m.Splits[split]
		if s == nil {
			return nil, fmt.Errorf("text: %s has no split %q\nhint: it has %s", dir, split, strings.Join(slices.Sorted(maps.Keys(m.Splits)), ", "))
		}
		var names []string
		for _, f := range s.Shards {
			names = append(names, filepath.Join(dir, f.File))
		}
		return names, nil
	}
	all, err := foreign.Glob(filepath.Join(dir, "*.bin"))
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	names := slices.DeleteFunc(all, func(n string) bool {
		parts := strings.FieldsFunc(strings.TrimSuffix(filepath.Base(n), ".bin"), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
		return !slices.Contains(parts, split)
	})
	if len(names) == 0 {
		return nil, fmt.Errorf(
			"text: %s has neither %s nor shards with %q in their names: %w\nhint: create shards from text with gotrain tokenize",
			dir,
			ManifestName,
			split,
			os.ErrNotExist,
		)
	}
	return names, nil
}

func matches(pattern string) ([]string, error) {
	names, err := foreign.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("text: pattern %q: %w", pattern, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("text: no file matches %s: %w", pattern, os.ErrNotExist)
	}
	return names, nil
}

// describe takes the meaning of the shards' tokens from the manifest, and checks the shards against it.
func (c *Corpus) describe(m *Manifest, split string) error {
	type entry struct {
		split  string
		tokens int64
	}
	listed := map[string]entry{}
	for name, s := range m.Splits {
		for _, f := range s.Shards {
			listed[f.File] = entry{name, f.Tokens}
		}
	}
	found := 0
	in := ""
	for _, k := range c.chunks {
		e, ok := listed[filepath.Base(k.where)]
		if !ok {
			continue
		}
		found++
		in = e.split
		if split != "" && e.split != split {
			return fmt.Errorf("text: %s belongs to split %q, not %q", k.where, e.split, split)
		}
		if e.tokens != k.n {
			return fmt.Errorf("text: %s has %d tokens, but %s lists %d", k.where, k.n, ManifestName, e.tokens)
		}
		if want := width(m.Tokenizer.Vocab); want != k.width {
			return fmt.Errorf("text: %s has tokens of %d bytes, but %s gives a vocabulary of %d", k.where, k.width, ManifestName, m.Tokenizer.Vocab)
		}
	}
	if found < len(c.chunks) {
		if found > 0 {
			return fmt.Errorf("text: %s: of %d shards %s lists only %d\nhint: they are of different data", c.name, len(c.chunks), ManifestName, found)
		}
		return nil // foreign shards in the same directory
	}
	c.info = m.Tokenizer
	if s := m.Splits[in]; len(s.Shards) == len(c.chunks) {
		c.documents = s.Documents
		c.maxID = func() (int32, error) { return s.MaxID, nil }
	}
	return nil
}
