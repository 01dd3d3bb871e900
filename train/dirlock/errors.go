package dirlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// exitInUse is launch.ExitInUse; this package imports nothing of the module.
const exitInUse = 73

// BusyError says that somebody else owns a folder.
type BusyError struct {
	Dir   string
	Owner Owner
	Hint  string // from Options
}

func (e *BusyError) Error() string {
	who, stop := "another run, "+e.Owner.String(), "stop it"
	host, _ := os.Hostname()
	switch here := e.Owner.Host == host; {
	case here && e.Owner.PID == os.Getpid() && e.Owner.Start == started(os.Getpid()):
		who = "a run in this same process"
	case here:
		stop = fmt.Sprintf("stop it (kill %d)", e.Owner.PID)
	}
	hint := ""
	if e.Hint != "" {
		hint = "; " + e.Hint
	}
	return fmt.Sprintf("%s is in use by %s\nhint: wait until that run ends, %s, or choose another folder%s", e.Dir, who, stop, hint)
}

// ExitCode is that of a folder which is in use.
func (e *BusyError) ExitCode() int { return exitInUse }

// ErrLost says that a lock is no longer held: its process was frozen for so long that another one took the folder over, or the lock
// file was removed.
var ErrLost = errors.New("the lock is lost")

// lostError is ErrLost with its circumstances.
type lostError struct {
	path string
	by   *Owner // nil: the file is gone
}

func (e *lostError) Error() string {
	dir := filepath.Dir(e.path)
	if e.by == nil {
		return fmt.Sprintf("%v: %s is gone, so another run may write to %s; nothing more is written there\nhint: the folder was removed, or this process "+
			"was frozen and another run has taken the folder over and ended", ErrLost, e.path, dir)
	}
	return fmt.Sprintf("%v: %s has taken %s over, as this process gave no sign of life; nothing more is written there\nhint: was it frozen or suspended? "+
		"The other run continues from the newest checkpoint", ErrLost, e.by, dir)
}

func (e *lostError) Is(target error) bool { return target == ErrLost }

// ExitCode is that of a folder which is in use.
func (e *lostError) ExitCode() int { return exitInUse }
