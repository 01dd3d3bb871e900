package text

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// PackOptions configures Pack.
type PackOptions struct {
	Options
	// ShardBytes is the size after which a new shard begins; 0: 200 MB.
	ShardBytes int64
	// Replace an existing directory of shards.
	Replace bool
}

// Report sums up what Pack did.
type Report struct {
	Progress
	Manifest *Manifest
}

// Pack tokenises files (or all files below directories) into a directory of shards with a manifest, for OpenShards. The same inputs and
// options give the same bytes, regardless of the number of workers. The directory appears complete or not at all.
func Pack(ctx context.Context, out string, inputs []string, o PackOptions) (_ *Report, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.ShardBytes == 0 {
		o.ShardBytes = 200 << 20
	}
	if o.ShardBytes < 1<<10 {
		return nil, fmt.Errorf("text: shard size of %d bytes is below the minimum of 1 KiB", o.ShardBytes)
	}
	files, total, err := expand(inputs)
	if err != nil {
		return nil, err
	}
	out = filepath.Clean(out)
	if err := vacant(out, o.Replace); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(out), "."+filepath.Base(out)+".tmp-*")
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	r, err := pack(ctx, tmp, files, total, &o)
	if err != nil {
		return nil, err
	}
	if err := vacant(out, o.Replace); err != nil { // another process may have been faster
		return nil, err
	}
	if err := install(tmp, out, o.Replace); err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	return r, nil
}

func pack(ctx context.Context, dir string, files []string, total int64, o *PackOptions) (*Report, error) {
	w := width(o.Tokenizer.Vocab())
	parts := [2]*shards{{dir: dir, split: Train, width: w, limit: o.ShardBytes}, {dir: dir, split: Val, width: w, limit: o.ShardBytes}}
	s := newSplitter(o.ValFraction, parts[0], parts[1])
	p, err := tokenise(ctx, files, total, &o.Options, s.add)
	if err == nil {
		err = s.finish()
	}
	err = errors.Join(err, parts[0].finish(), parts[1].finish())
	if err != nil {
		return nil, err
	}
	m := &Manifest{Format: manifestFormat, Tokenizer: infoOf(o.Tokenizer, o.BOS, o.EOS), Splits: map[string]*Split{}}
	for i, part := range parts {
		if len(part.list) > 0 {
			m.Splits[part.split] = &Split{Documents: s.docs[i], Tokens: s.tokens[i], MaxID: s.top[i], Shards: part.list}
		}
	}
	for _, f := range files {
		in := Input{File: filepath.Base(f)}
		if st, err := os.Stat(f); err == nil {
			in.Bytes = st.Size()
		}
		m.Inputs = append(m.Inputs, in)
	}
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	if err := writeSynced(filepath.Join(dir, ManifestName), append(raw, '\n')); err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	return &Report{Progress: p, Manifest: m}, nil
}

// vacant rejects a path that is in use. Only a directory with a manifest, and with no files that the manifest does not list, may be replaced.
func vacant(out string, replace bool) error {
	entries, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("text: %w", err)
	}
	m, err := ReadManifest(out)
	if err != nil {
		return err
	}
	if m == nil {
		return fmt.Errorf("text: %s is not empty, and does not hold shards written by gotrain tokenize: %w", out, os.ErrExist)
	}
	if !replace {
		return fmt.Errorf("text: %s already holds shards: %w\nhint: use --force to replace them", out, os.ErrExist)
	}
	ours := map[string]bool{ManifestName: true}
	for _, s := range m.Splits {
		for _, f := range s.Shards {
			ours[f.File] = true
		}
	}
	for _, e := range entries {
		if !ours[e.Name()] {
			return fmt.Errorf("text: %s also holds %s, which is not one of its shards, so it is not replaced: %w", out, e.Name(), os.ErrExist)
		}
	}
	return nil
}

// install moves the finished directory into place, durably. It removes an existing one only with replace.
func install(tmp, out string, replace bool) error {
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := syncDir(tmp); err != nil {
		return err
	}
	old := ""
	if _, err := os.Stat(out); err == nil {
		if err := os.Remove(out); err != nil { // not empty: shards to be replaced
			if !replace {
				return err
			}
			old = tmp + ".old"
			if err := os.Rename(out, old); err != nil {
				return err
			}
		}
	}
	if err := os.Rename(tmp, out); err != nil {
		if old != "" {
			err = errors.Join(err, os.Rename(old, out))
		}
		return err
	}
	if err := syncDir(filepath.Dir(out)); err != nil {
		return err
	}
	if old != "" {
		return os.RemoveAll(old)
	}
	return nil
}
