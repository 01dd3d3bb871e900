package dirlock

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// Owner is who a lock file names.
type Owner struct {
	Token string    `json:"token"` // of this ownership
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	// Boot, Space and Start make PID unambiguous: the boot of the kernel, the table of processes (containers have their own), and when the process
	// started, in the kernel's own count. "" where the system does not tell.
	Boot  string `json:"boot,omitempty"`
	Space string `json:"pid_space,omitempty"`
	Start string `json:"start,omitempty"`
	Flock bool   `json:"flock,omitempty"` // the owner also holds a flock on the file
	Beat  int64  `json:"beat"`            // changes while the owner is alive
}

func (o Owner) String() string {
	return fmt.Sprintf("process %d on %s, since %s", o.PID, strconv.Quote(o.Host), o.Since.Local().Format(time.DateTime))
}

// self is the owner that this process would be.
func self() (Owner, error) {
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return Owner{}, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	pid := os.Getpid()
	return Owner{
		Token: hex.EncodeToString(raw[:]), Host: host, PID: pid, Since: time.Now().UTC().Truncate(time.Second),
		Boot: boot(), Space: space(), Start: started(pid),
	}, nil
}

// size of a lock file: constant, so that a beat overwrites it in place and needs no room on a full disk.
const size = 1024

func (o Owner) encode() ([]byte, error) {
	raw, err := json.MarshalIndent(o, "", " ")
	if err != nil {
		return nil, err
	}
	if len(raw) >= size { // a host name of kilobytes
		return nil, fmt.Errorf("%d bytes describe the owner, more than %d", len(raw), size-1)
	}
	out := make([]byte, size)
	for i := range out {
		out[i] = ' '
	}
	copy(out, raw)
	out[size-1] = '\n'
	return out, nil
}

// errUnclear says that a lock file does not name an owner: it is being written, or was not written to its end.
var errUnclear = errors.New("names no owner")

func decode(raw []byte) (Owner, error) {
	var o Owner
	if err := json.Unmarshal(raw, &o); err != nil || len(o.Token) != 32 {
		return Owner{}, errUnclear
	}
	if _, err := hex.DecodeString(o.Token); err != nil { // it becomes a part of a file name
		return Owner{}, errUnclear
	}
	return o, nil
}

// read says who owns a lock file. It never waits, whatever lies there.
func read(path string) (Owner, error) {
	f, err := openPlain(path)
	if err != nil {
		return Owner{}, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return Owner{}, errors.Join(err, fmt.Errorf("%s is not a regular file", path))
	}
	raw, err := io.ReadAll(io.LimitReader(f, size))
	if err != nil {
		return Owner{}, err
	}
	return decode(raw)
}
