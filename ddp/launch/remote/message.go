package remote

import (
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
)

// hello is the first frame in both directions.
type hello struct {
	Version int
	PID     int    `json:",omitempty"`
	Program string `json:",omitempty"` // path of the agent's program
	Server  string `json:",omitempty"` // address by which ssh reached the agent's host
}

// job starts ranks.
type job struct {
	Host  string // name of the host in the user's list
	Part  launch.Part
	Grace time.Duration // for the ranks if the channel ends
}

// started answers a job.
type started struct {
	Error string `json:",omitempty"`
	Code  int    `json:",omitempty"`
	PIDs  []int  `json:",omitempty"`
}

// signal has a signal by name, because numbers differ between systems.
type signal struct{ Name string }

// record is a rank's record.
type record struct {
	Rank   int
	Record launch.Record
	Age    time.Duration
}

// exit is the end of a rank.
type exit struct {
	Rank, PID, Code int
	Signal          string `json:",omitempty"`
}

// Question asks a host something. What selects the fields.
type Question struct {
	ID   uint32
	What string

	Files     []string `json:",omitempty"` // facts: files to hash
	Dir       string   `json:",omitempty"` // facts: working directory
	Port      int      `json:",omitempty"` // listen: the port; 0: choose one
	Addrs     []string `json:",omitempty"` // reach: addresses to connect to, host:port each
	Name      string   `json:",omitempty"` // store: name of the file
	Hash      string   `json:",omitempty"` // store: its SHA-256
	Size      int64    `json:",omitempty"` // store: its size
	Interface string   `json:",omitempty"` // facts: for messages
}

// The questions.
const (
	askFacts  = "facts"  // Facts
	askListen = "listen" // opens a port for hosts to try, and returns it
	askClose  = "close"  // closes that port
	askReach  = "reach"  // which addresses can be connected to
	askStore  = "store"  // stores a file, unless it is there; its bytes follow in frames
)

// Answer answers a Question.
type Answer struct {
	ID    uint32
	Error string `json:",omitempty"`

	Facts *Facts   `json:",omitempty"`
	Port  int      `json:",omitempty"`
	Reach []string `json:",omitempty"` // for each address: "" or why it cannot be reached
	From  []string `json:",omitempty"` // for each address: the own address by which it was reached
	Path  string   `json:",omitempty"` // store: where the file is
	Have  bool     `json:",omitempty"` // store: it was there already
}

// Facts describe a host.
type Facts struct {
	Hostname  string
	OS, Arch  string
	Now       time.Time
	Files     map[string]string // path to SHA-256, or to "error: …"
	Dir       string            // problem with the working directory
	Devices   int               // NPUs
	Cores     int
	Shm       int64 // free bytes of /dev/shm; -1: it does not exist
	Addresses []Address
	Server    string // address by which ssh reached the host
}

// Address is one of a host's own.
type Address struct {
	Interface string
	Prefix    string // 10.0.0.1/24
	MTU       int
}
