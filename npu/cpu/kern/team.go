//go:build cgo && linux && (amd64 || arm64)

package kern

// #include "team.h"
//
// static void *exec_address(void) { return (void *)kern_exec; }
// static void *join_address(void) { return (void *)kern_join; }
// static void *use_address(void) { return (void *)kern_team_use; }
import "C"

import "unsafe"

// Team is a set of threads for long runs of small kernels: those kernels do not start and end a parallel region of OpenMP for each loop, and do not wait for
// threads that the system does not run. Results are the same bit by bit. Its threads are separate from OpenMP's, which spin for a moment after they
// worked, so it is not for kernels between primitives of the library.
type Team struct{ c *C.kern_team }

// NewTeam makes a team of at least two threads, the one that runs the kernels included; Start starts the others. With spin they spin for a
// moment before they sleep: not where several programs share the processors.
func NewTeam(threads int, spin bool) *Team {
	return &Team{C.kern_team_new(C.int(threads), C.int(bit(spin, 1)))}
}

// Start starts the threads, on the processors of the calling thread: call it before the first region of OpenMP, which may bind that thread to one of them.
func (t *Team) Start() { C.kern_team_start(t.c) }

// Use is the address of a C function, void use(void *team): loops of the calling thread use the team that is Self, or, with a null pointer, OpenMP again.
func (t *Team) Use() unsafe.Pointer { return C.use_address() }

// Self is the team as C knows it.
func (t *Team) Self() unsafe.Pointer { return unsafe.Pointer(t.c) }

// Exec is the function of commands (see Cmd.Command) that a team may run: of all but those that run commands of others.
func (t *Team) Exec() unsafe.Pointer { return C.exec_address() }

// Join is the address of a C function, int join(const void *commands, int n): it runs the first of n commands with the function Exec as one where it can, and
// returns how many that were. A team gains by it, as its threads wait for one another once.
func (t *Team) Join() unsafe.Pointer { return C.join_address() }

// Close ends the threads. No thread may use the team any more.
func (t *Team) Close() {
	C.kern_team_free(t.c)
	t.c = nil
}
