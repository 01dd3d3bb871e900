//go:build unix

package foreign

import "syscall"

// nonblock keeps the opening of a pipe from waiting for its other end. It does not affect reading regular files.
const nonblock = syscall.O_NONBLOCK
