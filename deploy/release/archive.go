package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/gotrain/gotrain/internal/notices"
)

const sumsFile = "SHA256SUMS"

// archive writes an archive below one folder. Nothing in it depends on the machine: owners, times, modes and the order of files are fixed.
func (r *release) archive(ctx context.Context, file, top string, programs []string, sbom []byte) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := &packer{tar.NewWriter(z), top, r.time}
	for _, p := range programs {
		if err := w.file(filepath.Base(p), p, 0o755); err != nil {
			return err
		}
	}
	if err := w.text("NOTICES.txt", []byte(notices.Text())); err != nil {
		return err
	}
	if err := w.text("sbom.cdx.json", sbom); err != nil {
		return err
	}
	tracked, err := git(ctx, r.root, "ls-files", "LICENSE", "README.md", "SECURITY.md", "CHANGELOG.md", "docs", "deploy", ":!deploy/release")
	if err != nil {
		return err
	}
	for _, name := range strings.Split(tracked, "\n") { // sorted
		mode := int64(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		if err := w.file(name, filepath.Join(r.root, filepath.FromSlash(name)), mode); err != nil {
			return err
		}
	}
	return errors.Join(w.tar.Close(), z.Close())
}

// packer adds files to an archive.
type packer struct {
	tar  *tar.Writer
	top  string
	time time.Time
}

func (p *packer) file(name, from string, mode int64) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return p.add(name, b, mode)
}

func (p *packer) text(name string, b []byte) error { return p.add(name, b, 0o644) }

func (p *packer) add(name string, b []byte, mode int64) error {
	h := &tar.Header{Name: path.Join(p.top, name), Mode: mode, Size: int64(len(b)), ModTime: p.time, Format: tar.FormatPAX}
	if err := p.tar.WriteHeader(h); err != nil {
		return err
	}
	_, err := p.tar.Write(b)
	return err
}

// checksums is what sha256sum -c reads.
func checksums(dir string, names []string) (string, error) {
	var out strings.Builder
	for _, name := range names {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%x  %s\n", h.Sum(nil), name)
	}
	return out.String(), nil
}
