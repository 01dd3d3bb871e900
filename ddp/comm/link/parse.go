package link

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const forms = "\nhint: write a bandwidth and a latency, such as 25gbit,20us or 12.5GB/s,5us; peer=4us and reduce=10GB/s may follow"

// Parse reads "25gbit,20us": a bandwidth, and if it differs from 25 µs, a latency. Two more numbers may follow, peer=4us (the sender's time for each
// further peer) and reduce=10GB/s (how fast gradients are added). Bits (kbit, mbit, gbit, tbit, also with /s or ps) are the speed of the line, of which
// 94 % are payload; bytes (MB/s, GB/s, GiB/s) are payload.
func Parse(s string) (Link, error) {
	l := Link{Latency: DefaultLatency, PerPeer: DefaultPerPeer, Reduce: DefaultReduce}
	seen := map[string]bool{}
	for _, part := range strings.Split(s, ",") {
		part = strings.TrimSpace(part)
		key, value, named := strings.Cut(part, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		if !named {
			key, value = "latency", part
			if !isDuration(part) {
				key = "bandwidth"
			}
		}
		if part == "" {
			return Link{}, fmt.Errorf("link: %q has an empty part%s", s, forms)
		}
		if seen[key] {
			return Link{}, fmt.Errorf("link: %q has two numbers for the %s%s", s, key, forms)
		}
		seen[key] = true
		if err := l.set(key, value); err != nil {
			return Link{}, fmt.Errorf("link: %q: %w%s", s, err, forms)
		}
	}
	if !seen["bandwidth"] {
		return Link{}, fmt.Errorf("link: %q has no bandwidth%s", s, forms)
	}
	return l, nil
}

// set gives a link one of its numbers.
func (l *Link) set(key, value string) (err error) {
	switch key {
	case "bandwidth":
		l.Bandwidth, err = rate(value)
	case "latency":
		l.Latency, err = latency(value)
	case "peer":
		l.PerPeer, err = latency(value)
	case "reduce":
		if per, ok := strings.CutSuffix(value, "s/B"); ok {
			l.Reduce, err = positive(per)
			return err
		}
		var r float64
		r, err = rate(value)
		l.Reduce = 1 / r
	default:
		err = fmt.Errorf("unknown word %q%s", key, nearest(key, []string{"bandwidth", "latency", "peer", "reduce"}))
	}
	return err
}

// isDuration reports whether the unit of a number is one of time.
func isDuration(s string) bool {
	_, unit := split(s)
	switch unit {
	case "ns", "us", "µs", "μs", "usec", "ms", "s":
		return true
	}
	return false
}

// latency reads a time such as 20us.
func latency(s string) (time.Duration, error) {
	number, unit := split(s)
	if unit == "usec" {
		unit = "us"
	}
	d, err := time.ParseDuration(number + unit)
	if err != nil {
		return 0, fmt.Errorf("%q is no time", s)
	}
	if d < 0 || d > time.Minute {
		return 0, fmt.Errorf("%q is not between 0 and a minute", s)
	}
	return d, nil
}

// rate reads a bandwidth, in bytes a second of payload.
func rate(s string) (float64, error) {
	number, unit := split(s)
	n, err := positive(number)
	if err != nil {
		return 0, fmt.Errorf("%q is no bandwidth", s)
	}
	per, bits := unit, 1.0
	for _, end := range [...]string{"/sec", "/s", "ps"} {
		if p, ok := strings.CutSuffix(per, end); ok {
			per = p
			break
		}
	}
	prefix := strings.TrimSuffix(per, "s") // gbits
	switch lower := strings.ToLower(prefix); {
	case strings.HasSuffix(lower, "bit"):
		prefix = lower[:len(lower)-3]
	case strings.HasSuffix(lower, "byte"):
		prefix, bits = lower[:len(lower)-4], 8
	case strings.HasSuffix(prefix, "B"):
		prefix, bits = prefix[:len(prefix)-1], 8
	case per+"ps" == unit && strings.HasSuffix(prefix, "b"): // gbps, Mbps
		prefix = prefix[:len(prefix)-1]
	case strings.HasSuffix(prefix, "b") && prefix != lower: // Gb/s
		prefix = prefix[:len(prefix)-1]
	case strings.HasSuffix(prefix, "b"):
		return 0, fmt.Errorf("%q may be bits or bytes: write %sgbit or %sGB/s", s, number, number)
	case unit == "":
		return 0, fmt.Errorf("%q has no unit", s)
	default:
		return 0, fmt.Errorf("unknown unit %q", unit)
	}
	scale, ok := map[string]float64{
		"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,
	}[strings.ToLower(prefix)]
	if !ok {
		return 0, fmt.Errorf("unknown unit %q", unit)
	}
	if bits == 1 {
		return n * scale / 8 * payload, nil
	}
	return n * scale, nil
}

// split separates a number from its unit.
func split(s string) (number, unit string) {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.' || s[i] == '-' || s[i] == '+' || exponent(s, i)) {
		i++
	}
	return s[:i], strings.TrimSpace(s[i:])
}

// exponent reports whether s[i] is the e of a number like 2.9e+09.
func exponent(s string, i int) bool {
	if s[i] != 'e' && s[i] != 'E' || i == 0 || i+1 == len(s) {
		return false
	}
	c := s[i+1]
	return c >= '0' && c <= '9' || (c == '+' || c == '-') && i+2 < len(s) && s[i+2] >= '0' && s[i+2] <= '9'
}

func positive(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f > 0) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q is no number above 0", s)
	}
	return f, nil
}
