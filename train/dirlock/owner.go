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

// Owner is the process that a lock file names.
type Owner struct {
	Token string    `json:"token"` // unique to this ownership
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	// Boot, Space and Start make PID unambiguous: the boot of the kernel, the PID namespace (containers have their own), and the start time of the
	// process in kernel ticks. "" if the system does not provide them.
	Boot  string `json:"boot,omitempty"`
	Space string `json:"pid_space,omitempty"`
	Start string `json:"start,omitempty"`
	Flock bool   `json:"flock,omitempty"` // the owner also holds a flock on the file
	Beat  int64  `json:"beat"`            // changes while the owner is alive
}

func (o Owner) String() string {
	return fmt.Sprintf("process %d on %s, since %s", o.PID, strconv.Quote(o.Host), o.Since.Local().Format(time.DateTime))
}

// self describes this process as an owner.
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

// size of a lock file: constant, so that a beat overwrites it in place and needs no space on a full disk.
const size = 1024

func (o Owner) encode() ([]byte, error) {
	raw, err := json.MarshalIndent(o, "", " ")
	if err != nil {
		return nil, err
	}
	if len(raw) >= size { // a host name of several kilobytes
		return nil, fmt.Errorf("the description of the owner has %d bytes, more than %d", len(raw), size-1)
	}
	out := make([]byte, size)
	for i := range out {
		out[i] = ' '
	}
	copy(out, raw)
	out[size-1] = '\n'
	return out, nil
}

// errUnclear means that a lock file does not name an owner: it is being written, or was never completed.
var errUnclear = errors.New("names no owner")

func decode(raw []byte) (Owner, error) {
	var o Owner
	if err := json.Unmarshal(raw, &o); err != nil || len(o.Token) != 32 {
		return Owner{}, errUnclear
	}
	if _, err := hex.DecodeString(o.Token); err != nil { // it becomes part of a file name
		return Owner{}, errUnclear
	}
	return o, nil
}

// read returns the owner that a lock file names. It never blocks, whatever kind of file it finds.
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
