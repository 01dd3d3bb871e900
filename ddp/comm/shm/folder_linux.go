package shm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Note [names]
//
// Any user may create names in /dev/shm, and the job ids of launchers can be guessed. So ranks meet in a folder of their user,
// gotrain-UID, which no other user may enter. Another user can create that name first, so a folder that belongs to another user
// or is accessible to others, or a name that is not a folder, is skipped: rank 0 then creates a folder with a random suffix, and the other ranks search
// all folders of their user. No name is trusted: owner, type and mode are checked after opening, and files in a folder are opened
// relative to it. The sticky bit of /dev/shm prevents others from removing a folder; without it they can prevent ranks from
// meeting, but cannot join.

// folder is an open directory that is private to this user.
type folder struct {
	fd   int
	path string
}

// folders opens the folders of this user in dir, sorted by name.
func folders(dir string) ([]*folder, error) {
	names, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w\nhint: it must be a tmpfs writable by this user", dir, err)
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

// openFolder opens a folder if it is private to this user.
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

// private returns an error unless an open file has the given type and is private to this user.
func private(fd int, path string, kind uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch {
	case st.Mode&unix.S_IFMT != kind:
		return fmt.Errorf("%s was not created by gotrain (mode %o)\nhint: remove it", path, st.Mode)
	case st.Uid != uint32(os.Geteuid()):
		return fmt.Errorf(
			"%s belongs to user %d, but this rank runs as user %d\nhint: run all ranks of a job as one user; if none of them runs as %d, have the file removed",
			path,
			st.Uid,
			os.Geteuid(),
			st.Uid,
		)
	case st.Mode&0o077 != 0:
		return fmt.Errorf("users other than %d may open %s (mode %o)\nhint: remove it", st.Uid, path, st.Mode&0o777)
	case kind == unix.S_IFREG && st.Nlink > 1:
		return fmt.Errorf("%s has a second hard link\nhint: remove it", path)
	}
	return nil
}

// ownFolder opens or creates this user's folder in dir.
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
	if errors.Is(err, unix.EEXIST) { // it belongs to another user, or another rank 0 of this user was faster, which is harmless
		path = fmt.Sprintf("%s-%016x", path, rand.Uint64())
		err = unix.Mkdir(path, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("creating %s: %w\nhint: %s must be a tmpfs writable by this user", path, err, dir)
	}
	return openFolder(path)
}

// open opens a file in the folder for reading and writing. Opening has no effect on anything but a regular file of this user.
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

// names lists the folder.
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

// tidy removes the folder if it is empty. A rank 0 that was about to use it creates another.
func (f *folder) tidy() { unix.Rmdir(f.path) }

// Sweep removes leftovers of dead jobs of this user from the rendezvous directory: files without a lock, expired refusals, and empty
// folders. "" means /dev/shm. A rank that is killed while it waits for the others leaves its file; a supervisor should call Sweep
// when its ranks are gone. Join calls it too.
func Sweep(dir string) {
	if dir == "" {
		dir = "/dev/shm"
	}
	list, _ := folders(dir)
	for _, f := range list {
		f.sweep()
		f.close()
	}
}

// sweep is Sweep for one folder.
func (f *folder) sweep() {
	unlock, ok := f.lock(0)
	if !ok {
		return // another process names a file, or sweeps
	}
	defer unlock()
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
}

// lock keeps the names of files in the folder from changing: a sweep that has found a file dead must not remove a file that got the same name
// meanwhile. ok is false if others hold the lock for longer than patience: a process may be frozen with it.
func (f *folder) lock(patience time.Duration) (unlock func(), ok bool) {
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", f.fd), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		if err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return func() { closeFD(fd) }, true
		}
		if time.Since(begin) >= patience {
			closeFD(fd)
			return nil, false
		}
	}
}
