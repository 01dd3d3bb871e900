package amount

import "strconv"

// Count formats 25557032 as 25,557,032.
func Count[T int | int32 | int64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

var units = []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// FLOP formats 784050000000 floating-point operations as 784.1 GFLOP.
func FLOP(n int64) string {
	x, u := float64(n), 0
	for x >= 999.95 && u < len(prefixes)-1 {
		x, u = x/1000, u+1
	}
	return strconv.FormatFloat(x, 'f', 1, 64) + " " + prefixes[u] + "FLOP"
}

var prefixes = []string{"", "k", "M", "G", "T", "P", "E"}

// Bytes formats 1288490189 as 1.2 GiB, in the largest unit that gives at least 1, with one decimal.
func Bytes(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	if n < 1024 && n > -1024 {
		return strconv.FormatInt(n, 10) + " bytes"
	}
	x, u := float64(n), 0
	// 1023.95 would be formatted as 1024.0 of the smaller unit.
	for (x >= 1023.95 || x <= -1023.95) && u < len(units)-1 {
		x, u = x/1024, u+1
	}
	return strconv.FormatFloat(x, 'f', 1, 64) + " " + units[u]
}
