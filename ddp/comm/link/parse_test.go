package link

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	us := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
	for s, want := range map[string]Link{
		"25gbit,20us":                 {us(20), 23.5e9 / 8, us(4), 1e-10},
		"25Gbit/s, 20 µs":             {us(20), 23.5e9 / 8, us(4), 1e-10},
		"20us,25Gbps":                 {us(20), 23.5e9 / 8, us(4), 1e-10},
		"25Gb/s":                      {us(25), 23.5e9 / 8, us(4), 1e-10},
		"25GBIT":                      {us(25), 23.5e9 / 8, us(4), 1e-10},
		"1gbit,50us":                  {us(50), 0.94e9 / 8, us(4), 1e-10},
		"1000mbit,0.05ms":             {us(50), 0.94e9 / 8, us(4), 1e-10},
		"100gbit":                     {us(25), 94e9 / 8, us(4), 1e-10},
		"12.5GB/s":                    {us(25), 12.5e9, us(4), 1e-10},
		"12.5GBps,5us":                {us(5), 12.5e9, us(4), 1e-10},
		"1GiB/s,0s":                   {0, 1 << 30, us(4), 1e-10},
		"500MB/s,1ms,peer=2us":        {us(1000), 5e8, us(2), 1e-10},
		"10gbit,20us,reduce=5GB/s":    {us(20), 9.4e9 / 8, us(4), 2e-10},
		"bandwidth=1GB/s,latency=1us": {us(1), 1e9, us(4), 1e-10},
	} {
		got, err := Parse(s)
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }
		if got.Latency != want.Latency || got.PerPeer != want.PerPeer || !near(got.Bandwidth, want.Bandwidth) || !near(got.Reduce, want.Reduce) {
			t.Errorf("%q: %+v, want %+v", s, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for s, want := range map[string]string{
		"":                    "empty part",
		"20us":                "no bandwidth",
		"25":                  "no unit",
		"25gb/s":              "may be bits or bytes",
		"25gbit,":             "empty part",
		"25gbit,10gbit":       "two numbers for the bandwidth",
		"25gbit,1us,2us":      "two numbers for the latency",
		"25gbit,-2us":         "not between 0 and a minute",
		"25gbit,latency=fast": "no time",
		"-1gbit":              "no bandwidth",
		"0gbit":               "no bandwidth",
		"fastgbit":            "no bandwidth",
		"25xbit":              `unknown unit "xbit"`,
		"25parsec":            `unknown unit "parsec"`,
		"25gbit,per=4us":      `unknown word "per" (did you mean "peer"?)`,
		"25gbit,reduce=":      "no bandwidth",
		"NaNgbit":             "no bandwidth",
		"1e999gbit":           "no bandwidth",
	} {
		l, err := Parse(s)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%q: %+v, %v; want an error with %q and a hint", s, l, err, want)
		}
	}
}

func TestTextIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		l := Link{time.Duration(r.Int64N(1e9)), r.Float64() * 1e11, time.Duration(r.Int64N(1e6)), r.Float64() * 1e-9}
		b, err := l.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back Link
		if err := back.UnmarshalText(b); err != nil || back != l {
			t.Fatalf("%s: %+v, want %+v: %v", b, back, l, err)
		}
	}
}

func TestString(t *testing.T) {
	for s, want := range map[string]string{"25gbit,20us": "23.5 Gbit/s, 20µs", "1gbit,1.23456ms": "940 Mbit/s, 1.23ms", "64kbit,0s": "60.2 kbit/s, 0s"} {
		l, err := Parse(s)
		if err != nil || l.String() != want {
			t.Errorf("%q: %q, want %q: %v", s, l.String(), want, err)
		}
	}
}

func TestValid(t *testing.T) {
	for _, l := range []Link{
		{}, {Bandwidth: -1}, {Bandwidth: math.NaN()}, {Bandwidth: math.Inf(1)}, {Bandwidth: 1, Latency: -1}, {Bandwidth: 1, Reduce: math.NaN()},
		{Bandwidth: 1, PerPeer: -1},
	} {
		if l.Valid() == nil {
			t.Errorf("%+v is valid", l)
		}
	}
	if err := Local.Valid(); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"25gbit,20us", "12.5GB/s", "1e9B/s,1us,peer=1us,reduce=1e-10s/B", "25gb/s", "=", ",,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := Parse(s)
		if err == nil && l.Valid() != nil {
			t.Errorf("%q: %+v: %v", s, l, l.Valid())
		}
	})
}
