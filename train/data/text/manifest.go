package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/gotrain/gotrain/train/foreign"
)

// ManifestName is the file that describes the shards in its directory.
const ManifestName = "dataset.json"

// maxManifest is enough for more than a hundred thousand shards.
const maxManifest = 16 << 20

const manifestFormat = "gotrain-tokens-1"

// Manifest describes a directory of token shards, as JSON.
type Manifest struct {
	Format    string            `json:"format"`
	Tokenizer Info              `json:"tokenizer"`
	Splits    map[string]*Split `json:"splits"` // "train" and, if present, "val"
	Inputs    []Input           `json:"inputs"`
}

// Split is one part of the data.
type Split struct {
	Documents int64   `json:"documents"`
	Tokens    int64   `json:"tokens"`
	MaxID     int32   `json:"max_id"`
	Shards    []Shard `json:"shards"`
}

// Shard is one file of a split, in the manifest's directory.
type Shard struct {
	File   string `json:"file"`
	Tokens int64  `json:"tokens"`
}

// Input is a file that the shards were made from.
type Input struct {
	File  string `json:"file"` // base name
	Bytes int64  `json:"bytes"`
}

// ParseManifest decodes and checks a manifest.
func ParseManifest(raw []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, err
	}
	if m.Format != manifestFormat {
		return nil, fmt.Errorf("format %q, want %q", m.Format, manifestFormat)
	}
	if m.Tokenizer.Vocab < 1 || m.Tokenizer.Vocab > 1<<30 {
		return nil, fmt.Errorf("vocabulary size %d is out of range", m.Tokenizer.Vocab)
	}
	if len(m.Splits) == 0 {
		return nil, errors.New("no splits are listed")
	}
	for name, s := range m.Splits {
		if s == nil || len(s.Shards) == 0 {
			return nil, fmt.Errorf("split %q lists no shards", name)
		}
		sum := int64(0)
		for _, f := range s.Shards {
			if f.File == "" || f.File != filepath.Base(f.File) || f.File == "." || f.File == ".." || f.Tokens < 0 || f.Tokens > maxShardTokens {
				return nil, fmt.Errorf("split %q lists shard %q with %d tokens", name, f.File, f.Tokens)
			}
			sum += f.Tokens
		}
		if sum != s.Tokens {
			return nil, fmt.Errorf("split %q has %d tokens, but its shards have %d", name, s.Tokens, sum)
		}
	}
	return m, nil
}

// ReadManifest reads the manifest of a directory. It returns nil and no error if there is none.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	raw, err := foreign.ReadFile(path, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	m, err := ParseManifest(raw)
	if err != nil {
		return nil, fmt.Errorf("text: %s: %w", path, err)
	}
	return m, nil
}
