package shm

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A rank 0 that cannot create the file of its job for lack of memory, or that gave up and removed the name of the file, cannot notify the
// others through the file. It leaves a refusal for each rank that has not arrived: a symbolic link in the folder whose target
// is the reason. A link of this length takes no page of a tmpfs. The rank removes the refusal after reading it; an unread refusal
// expires after a minute.

const (
	refusalSize = 120
	refusalAge  = time.Minute
)

func refusalName(job string, rank int) string { return fmt.Sprintf(".%s.%d", job, rank) }

// refuse leaves the reason for some ranks, and returns those that it could not leave it for.
func (f *folder) refuse(job string, ranks []int, reason error) (left []int, err error) {
	text, _, _ := strings.Cut(reason.Error(), "\n")
	text = text[:min(len(text), refusalSize)]
	for _, r := range ranks {
		name := refusalName(job, r)
		f.remove(name)
		if e := unix.Symlinkat(text, f.fd, name); e != nil {
			left, err = append(left, r), e // if that fails too, the others wait until their timeout
		}
	}
	return left, err
}

// refused returns the reason that rank 0 left for a rank, and removes it.
func (f *folder) refused(job string, rank int) (reason string, ok bool) {
	name := refusalName(job, rank)
	b := make([]byte, 2*refusalSize)
	n, err := unix.Readlinkat(f.fd, name, b)
	if err != nil {
		return "", false
	}
	ok = f.fresh(name)
	f.remove(name)
	return string(b[:n]), ok
}

// forget removes the refusal for a rank that gives up by itself.
func forget(cfg Config) {
	list, _ := folders(cfg.Dir)
	for _, f := range list {
		f.remove(refusalName(cfg.Job, cfg.Rank))
		f.close()
	}
}

// withdraw removes the refusals of a job that has a new rank 0.
func (f *folder) withdraw(job string, size int) {
	for r := 1; r < size; r++ {
		f.remove(refusalName(job, r))
	}
}

// expire removes an expired refusal. One that is gone is left alone: rank 0 may be about to leave another of that name.
func (f *folder) expire(name string) {
	if fresh, ok := f.age(name); ok && !fresh {
		f.remove(name)
	}
}

// fresh reports whether there is a refusal that is still valid.
func (f *folder) fresh(name string) bool {
	fresh, ok := f.age(name)
	return ok && fresh
}

// age reports whether a name is a valid refusal; ok is false if there is no such name.
func (f *folder) age(name string) (fresh, ok bool) {
	var st unix.Stat_t
	if err := unix.Fstatat(f.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, false
	}
	return st.Mode&unix.S_IFMT == unix.S_IFLNK && time.Since(time.Unix(st.Mtim.Unix())) < refusalAge, true
}
