package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// The files of a checkpoint.
const (
	ModelFile     = "model.safetensors"
	OptimizerFile = "optimizer.safetensors"
	StateFile     = "state.json"
	ManifestFile  = "MANIFEST.json"
)

// Manifest lists the files of a checkpoint. A directory without a valid one is not a checkpoint.
type Manifest struct {
	Format int       `json:"format"`
	Step   int64     `json:"step"`
	Serial int64     `json:"serial"` // increases with every commit to the store
	Time   time.Time `json:"time"`
	Files  []Entry   `json:"files"`
	Self   string    `json:"self"` // SHA-256 of the manifest with this field empty
}

// Entry is one file of a checkpoint.
type Entry struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Bytes is the total size of all files.
func (m Manifest) Bytes() int64 {
	n := int64(0)
	for _, e := range m.Files {
		n += e.Size
	}
	return n
}

func (m Manifest) encode() ([]byte, error) {
	var err error
	if m.Self, err = m.sum(); err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(m, "", "  ")
	return append(raw, '\n'), err
}

// sum is the expected value of Self. It guards what no file's checksum does: which checkpoint is the newest.
func (m Manifest) sum() (string, error) {
	m.Self = ""
	raw, err := json.Marshal(m)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), err
}

func decodeManifest(raw []byte, step int64) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, damaged("%s: %w", ManifestFile, err)
	}
	if err := checkFormat(ManifestFile, m.Format); err != nil {
		return m, err
	}
	if self, err := m.sum(); err != nil || self != m.Self {
		return m, damaged("the contents of %s are not those that were saved", ManifestFile)
	}
	if m.Step != step {
		return m, damaged("%s has step %d", ManifestFile, m.Step)
	}
	if !slices.ContainsFunc(m.Files, func(e Entry) bool { return e.Name == StateFile }) {
		return m, damaged("%s does not list %s", ManifestFile, StateFile)
	}
	seen, sum := map[string]bool{ManifestFile: true}, int64(0)
	for _, e := range m.Files {
		if err := checkName(e.Name); err != nil {
			return m, damaged("%s: %w", ManifestFile, err)
		}
		if sum += e.Size; e.Size < 0 || sum < 0 {
			return m, damaged("%s lists %s with %d bytes", ManifestFile, e.Name, e.Size)
		}
		if seen[e.Name] {
			return m, damaged("%s lists %s twice", ManifestFile, e.Name)
		}
		seen[e.Name] = true
	}
	return m, nil
}

// checkName allows only plain file names: a manifest must not refer to files outside its directory.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || name != filepath.Base(name) || !filepath.IsLocal(name) {
		return fmt.Errorf("%q is not a plain file name", name)
	}
	return nil
}
