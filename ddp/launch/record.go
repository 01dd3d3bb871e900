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

// Record is what a rank tells its supervisor about its failure, before it tells its peers. Ends of processes alone do not show which
// failure came first: a peer that hears of a failure may well be gone before the rank that failed.
type Record struct {
	PID    int       `json:"pid"`
	Time   time.Time `json:"time"`
	Code   int       `json:"code"`
	Reason string    `json:"reason"`
	// Blames are the ranks that the failure is due to, as far as this rank can tell; empty when it is its own.
	Blames []int `json:"blames,omitempty"`
	// Busy is not a failure: what the rank is doing that must not be cut short, such as saving. Idle ends it.
	Busy string `json:"busy,omitempty"`
	Idle bool   `json:"idle,omitempty"`
}

// recordVar names the pipe to the supervisor: the descriptor, and the pipe's inode, for a program in between may have closed it and the number
// may stand for something else by now.
const recordVar = "GOTRAIN_RECORD"

// recordEnv is the variable for a rank that inherits a pipe as its first descriptor after the standard ones.
func recordEnv(pipe *os.File) (string, error) {
	st, err := pipe.Stat()
	if err != nil {
		return "", err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.New("launch: the system does not tell the inode of a pipe")
	}
	return fmt.Sprintf("%s=3:%d", recordVar, sys.Ino), nil
}

// recordMax keeps a record within what a pipe takes in one piece (PIPE_BUF is at least 4096 on the systems that run ranks).
const recordMax = 4096

// Report tells the supervisor, where there is one, why this process is about to fail. Call it before the peers are told; of several calls
// the first counts. It does not block.
func Report(err error) { report(err, os.LookupEnv) }

func report(err error, lookup Lookup) {
	if err == nil || (Outcome{Code: ExitCode(err)}).OK() {
		return
	}
	Record{Code: ExitCode(err), Reason: strings.ToValidUTF8(err.Error(), "?"), Blames: Blamed(err)}.send(lookup)
}

// Busy tells the supervisor that this process does something that must not be cut short, such as saving. A rank that was asked to end is not killed while it is
// busy, and has the whole grace time again when done was called.
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
	for len(b) >= recordMax && len(r.Reason) > 0 { // escapes make the text longer than it was
		r.Reason = strings.ToValidUTF8(r.Reason[:len(r.Reason)*3/4], "")
		b, _ = json.Marshal(r)
	}
	if len(b) >= recordMax {
		return
	}
	// The pipe holds 16 records and the supervisor reads on; were it stuck, this process must still come to its end.
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

// WithBlame says of err which ranks caused it; nil stays nil. Errors of other packages may have a method Blames() []int instead, so that they need
// not import this one.
func WithBlame(err error, ranks ...int) error {
	if err == nil {
		return nil
	}
	return &blamed{err, ranks}
}

// Blamed finds the ranks that caused an error: those of the outermost error in the chain which has a method Blames() []int. nil where the
// error is this rank's own.
func Blamed(err error) []int {
	var b interface{ Blames() []int }
	if errors.As(err, &b) {
		return b.Blames()
	}
	return nil
}
