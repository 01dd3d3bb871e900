package shm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Note [names]
//
// Anybody may make names in /dev/shm, and the ids that launchers give to jobs can be guessed. So ranks meet in a folder of their own user's,
// gotrain-UID, which nobody else may enter. Whoever made that name first cannot be kept from it, so a folder that belongs to somebody
// else, that others may enter, or that is no folder at all is passed over: rank 0 then makes one with a random ending, and the other ranks look in all
// folders of their user. Nothing is believed because of its name: owner, kind and mode are looked at after opening, and what is in a folder is opened
// relative to it. The sticky bit of /dev/shm keeps others from removing a folder; where it is missing they can keep ranks from
// meeting, but not take part.

// folder is an open directory that belongs to this user alone.
type folder struct {
	fd   int
	path string
}

// folders opens the folders of this user in dir, in the order of their names.
func folders(dir string) ([]*folder, error) {
	names, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, fmt.Errorf("looking into %s: %w\nhint: it must be a tmpfs that this user may write", dir, err)
	}
	var out []*folder
	first := fmt.Sprintf("%s%d", prefix, os.Geteuid())
	for _, n := range names {
		if n.Name() != first && !strings.HasPrefix(n.Name(), first+"-") {
			continue
		}
		if f, err := openFolder(filepath.Join(dir, n.Name())); err == nil {
			out = append(out, f)
		}
	}
	return out, nil
}

// openFolder opens a folder if it is this user's alone.
func openFolder(path string) (*folder, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := private(fd, path, unix.S_IFDIR); err != nil {
		closeFD(fd)
		return nil, err
	}
	return &folder{fd, path}, nil
}

// private says what keeps an open file from being this user's alone. It is of the given kind.
func private(fd int, path string, kind uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch {
	case st.Mode&unix.S_IFMT != kind:
		return fmt.Errorf("%s is not what gotrain makes there (mode %o)\nhint: remove it", path, st.Mode)
	case st.Uid != uint32(os.Geteuid()):
		return fmt.Errorf(
			"%s belongs to user %d, this rank runs as user %d\nhint: all ranks of a job must run as one user; if none of them runs as %d, have the file removed",
			path,
			st.Uid,
			os.Geteuid(),
			st.Uid,
		)
	case st.Mode&0o077 != 0:
		return fmt.Errorf("others than user %d may open %s (mode %o)\nhint: remove it", st.Uid, path, st.Mode&0o777)
	case kind == unix.S_IFREG && st.Nlink > 1:
		return fmt.Errorf("%s has a second name\nhint: remove it", path)
	}
	return nil
}

// ownFolder opens this user's folder in dir, or makes it.
func ownFolder(dir string) (*folder, error) {
	list, err := folders(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range list[min(1, len(list)):] {
		f.close()
	}
	if len(list) > 0 {
		return list[0], nil
	}
	path := filepath.Join(dir, fmt.Sprintf("%s%d", prefix, os.Geteuid()))
	err = unix.Mkdir(path, 0o700)
	if errors.Is(err, unix.EEXIST) { // somebody else's, or a rank 0 of ours was faster, which does no harm
		path = fmt.Sprintf("%s-%016x", path, rand.Uint64())
		err = unix.Mkdir(path, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("making %s: %w\nhint: %s must be a tmpfs that this user may write", path, err, dir)
	}
	return openFolder(path)
}

// open opens a file in the folder for reading and writing. Opening has no effect on what is not a plain file of this user's.
func (f *folder) open(name string) (int, error) {
	fd, err := unix.Openat(f.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer closeFD(fd)
	if err := private(fd, filepath.Join(f.path, name), unix.S_IFREG); err != nil {
		return -1, err
	}
	return reopen(fd)
}

func (f *folder) remove(name string) error { return unix.Unlinkat(f.fd, name, 0) }

// names lists what is in the folder.
func (f *folder) names() []string {
	list, err := os.ReadDir(fmt.Sprintf("/proc/self/fd/%d", f.fd))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

func (f *folder) close() { closeFD(f.fd) }

// tidy removes the folder if nothing is in it. A rank 0 that was about to use it makes another.
func (f *folder) tidy() { unix.Rmdir(f.path) }

// Sweep removes what dead jobs of this user left in the directory where ranks meet: files of which no byte is locked, old notes, and folders with
// nothing in them. "" is /dev/shm. A rank that is killed while it waits for the others leaves its file; whoever supervises ranks calls Sweep
// when they are gone, and Join calls it too.
func Sweep(dir string) {
	if dir == "" {
		dir = "/dev/shm"
	}
	list, _ := folders(dir)
	for _, f := range list {
		for _, name := range f.names() {
			if strings.HasPrefix(name, ".") {
				f.expire(name)
				continue
			}
			fd, err := f.open(name)
			if err != nil {
				continue
			}
			if !held(fd, 0, MaxSize) {
				f.remove(name)
			}
			closeFD(fd)
		}
		f.tidy()
		f.close()
	}
}
