package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// Record is a failure report that a rank sends its supervisor before it notifies its peers. Process exits alone do not show which
// failure came first: a peer that learns of a failure may exit before the rank that failed.
type Record struct {
	PID    int       `json:"pid"`
	Time   time.Time `json:"time"`
	Code   int       `json:"code"`
	Reason string    `json:"reason"`
	// Blames are the ranks that caused the failure, as far as this rank can tell; empty if the failure is its own.
	Blames []int `json:"blames,omitempty"`
	// Victim tells, where Blames is empty, that another rank caused the failure and that this rank cannot tell which.
	Victim bool `json:"victim,omitempty"`
	// Stopped is not a failure: the program has stopped on request, with this exit code. It is for a rank that is a shell, which a signal ends.
	Stopped int `json:"stopped,omitempty"`
	// Busy is not a failure: it names work that must not be interrupted, such as saving. Idle ends it.
	Busy string `json:"busy,omitempty"`
	Idle bool   `json:"idle,omitempty"`
}

// recordVar names the pipe to the supervisor: the descriptor, and the pipe's inode, because an intermediate program may have closed the
// descriptor and its number may have been reused.
const recordVar = "GOTRAIN_RECORD"

// recordEnv is the variable for a rank that inherits a pipe as its first descriptor after the standard ones.
func recordEnv(pipe *os.File) (string, error) {
	st, err := pipe.Stat()
	if err != nil {
		return "", err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.New("launch: the system does not report the inode of a pipe")
	}
	return fmt.Sprintf("%s=3:%d", recordVar, sys.Ino), nil
}

// recordMax keeps a record within what a pipe writes atomically (PIPE_BUF is at least 4096 on the systems that run ranks).
const recordMax = 4096

// Report tells the supervisor, if there is one, why this process is about to fail. Call it before notifying the peers; only the first
// call counts. Report does not block.
func Report(err error) { report(err, os.LookupEnv) }

func report(err error, lookup Lookup) {
	switch code := ExitCode(err); code {
	case ExitOK:
		return
	case ExitStopped, ExitNotResumable:
		Record{Stopped: code}.send(lookup)
		return
	}
	Record{Code: ExitCode(err), Reason: strings.ToValidUTF8(err.Error(), "?"), Blames: Blamed(err), Victim: Victim(err)}.send(lookup)
}

// Busy tells the supervisor that this process does work that must not be interrupted, such as saving. A rank that was asked to end is not killed while it
// is busy, and its grace period restarts when done is called.
func Busy(what string) (done func()) {
	Record{Busy: what}.send(os.LookupEnv)
	return func() { Record{Idle: true}.send(os.LookupEnv) }
}

// send writes the record to the supervisor's pipe, if there is one.
func (r Record) send(lookup Lookup) {
	var fd int
	var inode uint64
	v, _ := lookup(recordVar)
	if n, _ := fmt.Sscanf(v, "%d:%d", &fd, &inode); n != 2 {
		return
	}
	var st syscall.Stat_t
	if syscall.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFIFO || st.Ino != inode {
		return
	}
	r.PID, r.Time = os.Getpid(), time.Now()
	b, _ := json.Marshal(r)
	for len(b) >= recordMax && len(r.Reason) > 0 { // escapes lengthen the text
		r.Reason = strings.ToValidUTF8(r.Reason[:len(r.Reason)*3/4], "")
		b, _ = json.Marshal(r)
	}
	if len(b) >= recordMax {
		return
	}
	// The pipe holds 16 records and the supervisor keeps reading; if it is stuck, this process must still be able to exit.
	_ = syscall.SetNonblock(fd, true)
	_, _ = syscall.Write(fd, append(b, '\n'))
}

// blamed is an error that other ranks caused.
type blamed struct {
	error
	ranks []int
}

func (e *blamed) Unwrap() error { return e.error }
func (e *blamed) Blames() []int { return e.ranks }

// WithBlame marks err as caused by the given ranks; nil stays nil. Errors of other packages can have a method Blames() []int instead of importing
// this package.
func WithBlame(err error, ranks ...int) error {
	if err == nil {
		return nil
	}
	return &blamed{err, ranks}
}

// Blamed returns the ranks that caused an error: those of the outermost error in the chain with a method Blames() []int. It returns nil if
// the error is this rank's own.
func Blamed(err error) []int {
	var b interface{ Blames() []int }
	if errors.As(err, &b) {
		return b.Blames()
	}
	return nil
}

// Victim reports whether an unknown other rank caused an error: it blames nobody, but the outermost error in the chain with a method Victim() bool says so.
// The time-out of a collective is such an error where the transport cannot tell which rank was late.
func Victim(err error) bool {
	var v interface{ Victim() bool }
	return len(Blamed(err)) == 0 && errors.As(err, &v) && v.Victim()
}
