package comm

import "time"

// Describer is a Communicator that can tell how its data travel, for reports such as that of gotrain bench.
type Describer interface {
	// Describe returns the levels that a collective passes on its way, the innermost first: one for a plain transport, two where ranks of a host reduce
	// in shared memory and hosts over a network. Every rank has levels of the same transports, in the same order.
	Describe() []Level
}

// Level is one kind of link between ranks. Fields that a transport does not know are zero.
type Level struct {
	Transport string // "shm", "tcp"
	Ranks     int    // that this rank reaches over it, with itself
	Address   string // where data of this rank arrive: "10.0.0.2:41823 (eth1)"; "" where there is no address

	// The link of this rank, as the transport measured it at the start.
	Latency   time.Duration // of a short message, one way
	Bandwidth float64       // bytes a second, one way, with the link to itself
	Sharing   int           // how many ranks use this rank's link at the same time; 0 counts as 1

	Wire      int64                  // bytes that this rank has sent over it so far
	Algorithm func(call Call) string // the word for what it does with a call: "exchange", "mesh"
	Notes     []string               // what else the reader of a report should know: "congestion control cubic", "2 streams"
}

// Describe returns the levels of c, or nil if it cannot tell.
func Describe(c Communicator) []Level {
	if d, ok := c.(Describer); ok {
		return d.Describe()
	}
	return nil
}
