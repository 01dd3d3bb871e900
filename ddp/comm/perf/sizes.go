package perf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Growth is how sizes follow each other: by a factor, or by a number of bytes if Step is not 0.
type Growth struct {
	Factor int64
	Step   int64
}

// maxSizes bounds the rows of a table: with more, a step was meant to be something else.
const maxSizes = 1000

// Sizes lists the sizes from low to high.
func Sizes(low, high int64, g Growth) ([]int64, error) {
	switch {
	case low < 1:
		return nil, fmt.Errorf("the smallest size is %d bytes: at least 1", low)
	case high < low:
		return nil, fmt.Errorf("the largest size, %s, is below the smallest, %s", FormatBytes(high), FormatBytes(low))
	case g.Step < 0 || g.Step == 0 && g.Factor < 2:
		return nil, fmt.Errorf("sizes grow by a factor of %d and a step of %d bytes: a factor of at least 2, or a step of at least 1", g.Factor, g.Step)
	}
	var out []int64
	for n := low; n <= high; {
		if len(out) == maxSizes {
			return nil, fmt.Errorf("more than %d sizes between %s and %s", maxSizes, FormatBytes(low), FormatBytes(high))
		}
		out = append(out, n)
		switch {
		case g.Step > 0:
			if n > math.MaxInt64-g.Step {
				return out, nil
			}
			n += g.Step
		case n > math.MaxInt64/g.Factor:
			return out, nil
		default:
			n *= g.Factor
		}
	}
	return out, nil
}

// units of sizes; all are powers of 1024, as in nccl-tests and hccl_test.
var units = []struct {
	letter string
	bytes  int64
}{{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}}

// ParseBytes reads a size: "4096", "8K", "64M", "1G", "64MiB", "64MB".
func ParseBytes(s string) (int64, error) {
	digits := strings.TrimRight(s, "KMGkmgiIbB ")
	suffix := strings.ToUpper(strings.TrimSpace(s[len(digits):]))
	n, err := strconv.ParseInt(digits, 10, 64)
	bad := fmt.Errorf("%q is no size: write a number of bytes, or 8K, 64M, 1G", s)
	if err != nil || n < 0 {
		return 0, bad
	}
	if suffix == "" || suffix == "B" {
		return n, nil
	}
	for _, u := range units {
		if suffix == u.letter || suffix == u.letter+"B" || suffix == u.letter+"IB" {
			if n > math.MaxInt64/u.bytes {
				return 0, fmt.Errorf("%q is more bytes than a number can count", s)
			}
			return n * u.bytes, nil
		}
	}
	return 0, bad
}

// FormatBytes writes a size exactly: "64 MiB", "4097 B".
func FormatBytes(n int64) string {
	for i := len(units) - 1; i >= 0; i-- {
		if u := units[i]; n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d %siB", n/u.bytes, u.letter)
		}
	}
	return fmt.Sprintf("%d B", n)
}
