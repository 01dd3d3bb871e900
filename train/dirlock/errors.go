package dirlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// exitInUse is launch.ExitInUse; this package imports no other package of the module.
const exitInUse = 73

// BusyError reports that another process owns a folder.
type BusyError struct {
	Dir   string
	Owner Owner
	Hint  string // Options.Hint
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

// ExitCode is the exit code for a folder in use.
func (e *BusyError) ExitCode() int { return exitInUse }

// ErrLost reports that a lock is no longer held: its process was frozen for so long that another one took over the folder, or the lock file was
// removed.
var ErrLost = errors.New("the lock is lost")

// lostError is ErrLost with details.
type lostError struct {
	path string
	by   *Owner // nil: the file is gone
}

func (e *lostError) Error() string {
	dir := filepath.Dir(e.path)
	if e.by == nil {
		return fmt.Sprintf("%v: %s is gone, so another run may be writing to %s; this run writes nothing more there\n"+
			"hint: check whether the folder was removed, or whether this process was frozen and another run used the folder meanwhile", ErrLost, e.path, dir)
	}
	return fmt.Sprintf("%v: %s has taken over %s, because this process gave no sign of life; this run writes nothing more there\n"+
		"hint: check whether this process was suspended; the other run continues from the newest checkpoint", ErrLost, e.by, dir)
}

func (e *lostError) Is(target error) bool { return target == ErrLost }

// ExitCode is the exit code for a folder in use.
func (e *lostError) ExitCode() int { return exitInUse }
