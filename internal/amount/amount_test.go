package amount

import (
	"math"
	"testing"
)

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", -999: "-999", -1000: "-1,000", 25557032: "25,557,032", math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := Count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 1<<20 - 60: "1023.9 KiB",
		5 << 20: "5.0 MiB", 1288490189: "1.2 GiB",
		257 << 30: "257.0 GiB", 3 << 40: "3.0 TiB", math.MaxInt64: "8.0 EiB", -1 << 21: "-2.0 MiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestFLOP(t *testing.T) {
	for n, want := range map[int64]string{0: "0.0 FLOP", 999: "999.0 FLOP", 2_543_000: "2.5 MFLOP", 784_050_000_000: "784.0 GFLOP",
		999_999_000_000: "1.0 TFLOP", 223_463_480_000_000: "223.5 TFLOP"} {
		if got := FLOP(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
