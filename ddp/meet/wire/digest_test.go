package wire

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A reader that gets every digest has the sender's state after each.
func TestDigestsFollowEachOther(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var was, known []Pulse
	for n := range 200 {
		is := make([]Pulse, 50)
		if was != nil {
			is = slices.Clone(was)
		}
		for i := range is {
			switch r.IntN(6) {
			case 0:
				is[i].Calls += int64(r.IntN(300))
			case 1:
				is[i] = Pulse{Beat{int64(r.IntN(9)) - 1, r.Uint64(), "counting"}, r.Uint64N(5000), r.IntN(2) == 0}
			case 2:
				is[i].Silent = 0
			}
		}
		if n%40 == 0 { // the reader missed some
			was, known = nil, nil
		}
		var err error
		if known, err = ParseDigest(AppendDigest(nil, was, is), known); err != nil || !slices.Equal(known, is) {
			t.Fatalf("digest %d: %v\n%v\nwant\n%v", n, err, known, is)
		}
		was = is
	}
}

// What 1000 ranks get in each beat of a training: each has issued some collectives more.
func TestDigestOfAThousandRanks(t *testing.T) {
	was := make([]Pulse, 1000)
	for i := range was {
		was[i].Calls = 1_000_000 + int64(i)
	}
	is := slices.Clone(was)
	for i := range is {
		is[i].Calls += 100
	}
	if n := len(AppendDigest(nil, was, is)); n > 2100 {
		t.Errorf("%d bytes for 1000 ranks that train", n)
	}
	if n := len(AppendDigest(nil, is, is)); n > 8 {
		t.Errorf("%d bytes for 1000 ranks of which nothing is new", n)
	}
	is[999].Silent = 1500
	if n := len(AppendDigest(nil, was, slices.Concat(was[:999], is[999:]))); n > 20 {
		t.Errorf("%d bytes for one rank that is silent", n)
	}
}

func TestDigestMalformed(t *testing.T) {
	whole := AppendDigest(nil, nil, []Pulse{{Beat: Beat{Calls: 3}}, {Left: true}})
	for n := range len(whole) {
		if _, err := ParseDigest(whole[:n], nil); err == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(whole))
		}
	}
	changes := AppendDigest(nil, make([]Pulse, 2), []Pulse{{}, {Left: true}})
	for _, was := range [][]Pulse{nil, make([]Pulse, 3)} {
		if _, err := ParseDigest(changes, was); err == nil {
			t.Errorf("changes to %d ranks that the reader does not know are accepted", len(was))
		}
	}
	if _, err := ParseDigest([]byte{255, 255, 255, 255, 15, 0, 255, 255, 255, 255, 15}, nil); err == nil {
		t.Error("too many ranks are accepted")
	}
}
