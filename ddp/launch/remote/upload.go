package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// maxUpload bounds a program that is sent to a host.
const maxUpload = 4 << 30

// upload stores a file that comes in frames, in the cache folder of the user, below the hash of its content. It appears by a rename when it is whole.
type upload struct {
	q    Question
	path string
	have bool
	tmp  *os.File
	hash hash.Hash
	got  int64
	once sync.Once
	err  error
	done chan struct{}
}

// cachePath is where a program with a hash is kept.
func cachePath(name, hash string) (string, error) {
	if len(hash) != 64 || strings.Trim(hash, "0123456789abcdef") != "" || name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return "", fmt.Errorf("%w: file %q with hash %q", errFrame, name, hash)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "gotrain", "bin", hash, name), nil
}

func newUpload(q Question) *upload {
	u := &upload{q: q, hash: sha256.New(), done: make(chan struct{})}
	var err error
	if u.path, err = cachePath(q.Name, q.Hash); err == nil && (q.Size < 0 || q.Size > maxUpload) {
		err = fmt.Errorf("%w: a file of %d bytes", errFrame, q.Size)
	}
	if err == nil {
		if have, hashed := hashFile(u.path); hashed == nil && have == q.Hash {
			u.have = true
			u.end(nil)
			return u
		}
		if err = os.MkdirAll(filepath.Dir(u.path), 0o700); err == nil {
			u.tmp, err = os.CreateTemp(filepath.Dir(u.path), ".tmp-*")
		}
	}
	if err != nil {
		u.end(err)
	}
	return u
}

// write takes the next bytes.
func (u *upload) write(b []byte) {
	if u.tmp == nil { // it is there, or failed
		return
	}
	u.got += int64(len(b))
	u.hash.Write(b)
	_, err := u.tmp.Write(b)
	switch {
	case err != nil:
		u.end(err)
	case u.got > u.q.Size:
		u.end(fmt.Errorf("%w: more bytes than %d", errFrame, u.q.Size))
	case u.got == u.q.Size:
		u.end(u.keep())
	}
}

// keep makes the whole file appear.
func (u *upload) keep() error {
	if got := sum(u.hash); got != u.q.Hash {
		return fmt.Errorf("the file has hash %.12s, expected %.12s", got, u.q.Hash)
	}
	return errors.Join(u.tmp.Chmod(0o755), u.tmp.Close(), os.Rename(u.tmp.Name(), u.path))
}

// end finishes the upload.
func (u *upload) end(err error) {
	u.once.Do(func() {
		u.err = err
		if u.tmp != nil && err != nil {
			u.tmp.Close()
			os.Remove(u.tmp.Name())
		}
		u.tmp = nil
		close(u.done)
	})
}

// abandon ends an upload that is not complete; nil has none.
func (u *upload) abandon(err error) {
	if u != nil {
		u.end(err)
	}
}

// wait returns where the file is.
func (u *upload) wait(ctx context.Context) (path string, have bool, err error) {
	select {
	case <-u.done:
		return u.path, u.have, u.err
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
}
