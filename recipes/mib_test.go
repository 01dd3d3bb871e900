package recipes

import (
	"strings"
	"testing"
)

func TestBucketsAuto(t *testing.T) {
	base := "[run]\nsteps = 1\n"
	load := func(text string, sets ...string) (*Recipe, error) {
		return Decode(base+text, "r.toml", append(sets, "data.kind=synthetic")...)
	}
	for _, c := range []struct {
		text string
		sets []string
		want MiB
	}{
		{"", nil, 25},
		{"[train]\nbucket_mb = \"auto\"\n", nil, Auto},
		{"[train]\nbucket_mb = 4\n", []string{"train.bucket_mb=auto"}, Auto},
		{"[train]\nbucket_mb = \"auto\"\n", []string{"train.bucket_mb=12.5"}, 12.5},
		{"", []string{`train.bucket_mb="auto"`}, Auto},
	} {
		r, err := load(c.text, c.sets...)
		if err != nil || r.Train.BucketMB != c.want {
			t.Errorf("%q %v: %+v, %v; want %v", c.text, c.sets, r, err, c.want)
			continue
		}
		again, err := Decode(r.String(), "again.toml")
		if err != nil || again.Train.BucketMB != c.want || again.Fingerprint() != r.Fingerprint() {
			t.Errorf("%q: written and read again: %v", c.text, err)
		}
	}
	auto, _ := load("", "train.bucket_mb=auto")
	usual, _ := load("")
	if !strings.Contains(auto.String(), "bucket_mb = \"auto\"\n") || auto.Fingerprint() == usual.Fingerprint() {
		t.Error("auto is written as another number")
	}
	for want, set := range map[string]string{
		`needs a number or "auto", got the text`: "train.bucket_mb=large",
		"must be above 0 MiB, got -1":            "train.bucket_mb=-1",
		"must be above 0 MiB, got 0":             "train.bucket_mb=0",
		"needs a number, got the text":           "train.first_bucket_mb=auto",
	} {
		if _, err := load("", set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}
