package npu

import "time"

// Limits are what bounds the kernels of a device, as simple loops measured it: no kernel does more operations, or moves more bytes.
type Limits struct {
	Threads int           `json:"threads"`
	Peaks   []Peak        `json:"peaks"`     // of float32 first
	Rates   []Rates       `json:"rates"`     // by working set, the smallest first
	Region  time.Duration `json:"region_ns"` // to start all threads and to wait for them, without work
}

// Peak is the arithmetic of a type in registers.
type Peak struct {
	Type string  `json:"type"` // of the factors; sums are float32
	ISA  string  `json:"isa"`
	FLOP float64 `json:"flop_per_second"` // a multiply-add is two
}

// Rates are how fast loops move bytes that are used again and again, in bytes a second over all threads. Reads and writes count.
type Rates struct {
	Bytes int64   `json:"bytes"` // of all arrays together
	Read  float64 `json:"read"`
	Copy  float64 `json:"copy"` // b to a
	Add   float64 `json:"add"`  // b to a, in place
}

// Peak returns the operations a second of a type; 0 if the device has none for it.
func (l Limits) Peak(t DType) float64 {
	for _, p := range l.Peaks {
		if p.Type == t.String() {
			return p.FLOP
		}
	}
	return 0
}

// Best combines two measurements of one device: other programs, and a processor that changes its speed, make a measurement lower but never higher.
func (l Limits) Best(m Limits) Limits {
	if len(l.Peaks) != len(m.Peaks) || len(l.Rates) != len(m.Rates) || l.Threads != m.Threads { // one of them is empty
		return m
	}
	out := Limits{Threads: l.Threads, Region: min(l.Region, m.Region)}
	for i, p := range l.Peaks {
		p.FLOP = max(p.FLOP, m.Peaks[i].FLOP)
		out.Peaks = append(out.Peaks, p)
	}
	for i, a := range l.Rates {
		b := m.Rates[i]
		out.Rates = append(out.Rates, Rates{Bytes: a.Bytes, Read: max(a.Read, b.Read), Copy: max(a.Copy, b.Copy), Add: max(a.Add, b.Add)})
	}
	return out
}
