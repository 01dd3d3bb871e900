//go:build unix

package foreign

import "syscall"

// nonblock keeps the opening of a pipe from waiting for its other end. Reading regular files is not changed by it.
const nonblock = syscall.O_NONBLOCK
