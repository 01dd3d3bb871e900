package data

import "syscall"

// lowerPriority sets the nice value of the calling thread (on Linux each thread has its own). It fails only if the
// system forbids it, and then decoding merely competes more for the CPU.
var lowerPriority = func(nice int) { _ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), min(nice, 19)) }
