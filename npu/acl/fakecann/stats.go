package fakecann

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Stats are the statistics of a process that used the fake: of the file that FAKE_CANN_STATS names, or of package fakectl.
type Stats struct {
	Violations     int64   `json:"violations"`      // of the rules that a program must never break
	FirstViolation string  `json:"first_violation"` // in words
	Injected       int64   `json:"injected"`        // errors of FAKE_CANN_INJECT
	PageableCopies int64   `json:"pageable_copies"` // asynchronous copies of memory that is not page-locked: they wait
	OutOfRange     int64   `json:"out_of_range"`    // indices that operators met; the real result is undefined then
	Tasks          int64   `json:"tasks"`           // that streams ended
	Threads        int64   `json:"threads"`         // that called any function
	DeviceThreads  []int64 `json:"device_threads"`  // that used a context, by device

	// What is alive.
	DeviceBlocks    int64 `json:"device_blocks"`
	DeviceBytes     int64 `json:"device_bytes"`
	HostBlocks      int64 `json:"host_blocks"` // page-locked
	HostBytes       int64 `json:"host_bytes"`
	Streams         int64 `json:"streams"`
	Events          int64 `json:"events"`
	Contexts        int64 `json:"contexts"` // without those of aclrtSetDevice
	Comms           int64 `json:"comms"`
	Tensors         int64 `json:"tensors"`
	Scalars         int64 `json:"scalars"`
	Arrays          int64 `json:"arrays"`
	Lists           int64 `json:"lists"`
	LeakedExecutors int64 `json:"leaked_executors"`
	Repeatable      int64 `json:"repeatable"` // of the executors
	Graphs          int64 `json:"graphs"`

	Calls map[string]int64 `json:"calls"` // by function
}

// ReadStats reads a file of statistics.
func ReadStats(file string) (*Stats, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return ParseStats(text)
}

// ParseStats reads statistics as libfakecann writes them.
func ParseStats(text []byte) (*Stats, error) {
	s := new(Stats)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("fakecann: statistics: %w", err)
	}
	return s, nil
}

// Leaks lists what is alive, in words; "" is nothing.
func (s *Stats) Leaks() string {
	var l []string
	for _, c := range []struct {
		n    int64
		what string
	}{
		{s.DeviceBlocks, "blocks of device memory"}, {s.HostBlocks, "blocks of page-locked memory"}, {s.Streams, "streams"}, {s.Events, "events"}, {s.Contexts, "contexts"},
		{s.Comms, "communicators"}, {s.Tensors, "tensors"}, {s.Scalars, "scalars"}, {s.Arrays, "arrays"}, {s.Lists, "lists"}, {s.LeakedExecutors, "executors"},
		{s.Graphs, "graphs"},
	} {
		if c.n != 0 {
			l = append(l, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(l, ", ")
}
