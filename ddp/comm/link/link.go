package link

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Link is what one rank's connection to the others gives. The zero value is no link.
type Link struct {
	Latency   time.Duration // of a small message, one way, with what sender and receiver do for it (α)
	Bandwidth float64       // payload bytes a second of one direction (1/β)
	PerPeer   time.Duration // the sender's time for each peer after the first (o)
	Reduce    float64       // seconds to add one byte of gradients (γ)
}

// What a link has if nobody says otherwise: an Ethernet with a switch and a TCP stack, and one core that adds 10 GB a second.
const (
	DefaultLatency = 25 * time.Microsecond
	DefaultPerPeer = 4 * time.Microsecond
	DefaultReduce  = 1e-10
)

// payload is the part of an Ethernet line that a TCP connection can fill: 1448 bytes of 1538 on the wire.
const payload = 0.94

// Local is the memory of one machine as a link between its ranks: the order of magnitude for a plan without a measurement.
var Local = Link{Latency: 400 * time.Nanosecond, Bandwidth: 8e9, PerPeer: 200 * time.Nanosecond, Reduce: DefaultReduce}

// Valid reports what is wrong with a link, nil if nothing.
func (l Link) Valid() error {
	switch {
	case !(l.Bandwidth > 0) || math.IsInf(l.Bandwidth, 0):
		return fmt.Errorf("link: a bandwidth of %v bytes/s", l.Bandwidth)
	case l.Latency < 0 || l.PerPeer < 0:
		return fmt.Errorf("link: a latency of %v and %v for each peer", l.Latency, l.PerPeer)
	case !(l.Reduce >= 0) || math.IsInf(l.Reduce, 0):
		return fmt.Errorf("link: %v seconds to add a byte", l.Reduce)
	}
	return nil
}

// String is for people: "23.5 Gbit/s, 20µs".
func (l Link) String() string { return Rate(l.Bandwidth) + ", " + short(l.Latency) }

// Rate writes bytes a second as people name a network: "940 Mbit/s".
func Rate(bytesPerSecond float64) string {
	bits := 8 * bytesPerSecond
	switch {
	case bits >= 999.5e6:
		return strconv.FormatFloat(bits/1e9, 'g', 3, 64) + " Gbit/s"
	case bits >= 999.5e3:
		return strconv.FormatFloat(bits/1e6, 'g', 3, 64) + " Mbit/s"
	}
	return strconv.FormatFloat(bits/1e3, 'g', 3, 64) + " kbit/s"
}

// MarshalText writes a link so that UnmarshalText and Parse read exactly the same numbers.
func (l Link) MarshalText() ([]byte, error) {
	s := strconv.FormatFloat(l.Bandwidth, 'g', -1, 64) + "B/s," + l.Latency.String() + ",peer=" + l.PerPeer.String() +
		",reduce=" + strconv.FormatFloat(l.Reduce, 'g', -1, 64) + "s/B"
	return []byte(s), nil
}

// UnmarshalText is Parse.
func (l *Link) UnmarshalText(b []byte) (err error) {
	*l, err = Parse(string(b))
	return err
}

// short is a duration with three digits.
func short(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// seconds makes a duration of a model's seconds; what no duration can hold is the longest one.
func seconds(s float64) time.Duration {
	if ns := s * 1e9; ns < math.MaxInt64 {
		return time.Duration(math.Round(ns))
	}
	return math.MaxInt64
}
