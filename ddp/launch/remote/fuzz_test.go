package remote

import (
	"bufio"
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
)

// Any bytes behind the magic are frames or an error; what was encoded is decoded.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("hello\n"), message(kindHello, hello{Version: 1}).append(nil))
	f.Add([]byte(magic[:5]), output(3, true, []byte("line\n")).append(frame{kind: kindBeat}.append(nil)))
	f.Add([]byte{}, []byte{0xff, 0xff, 0xff, 0x7f, 1})
	f.Fuzz(func(t *testing.T, banner, body []byte) {
		r := bufio.NewReader(bytes.NewReader(append(append(bytes.Clone(banner), magic...), body...)))
		got, err := skipTo(r)
		if bytes.Contains(banner, []byte(magic)) {
			return
		}
		if err != nil && len(banner) < maxBanner-len(magic) || err == nil && !bytes.HasPrefix(banner, got) {
			t.Fatalf("banner %q of %q: %v", got, banner, err)
		}
		for err == nil {
			var fr frame
			if fr, err = readFrame(r); err != nil {
				return
			}
			again, err2 := readFrame(bytes.NewReader(fr.append(nil)))
			if err2 != nil || again.kind != fr.kind || !bytes.Equal(again.payload, fr.payload) {
				t.Fatalf("frame %d of %d bytes comes back as %d: %v", fr.kind, len(fr.payload), again.kind, err2)
			}
		}
	})
}

type nobody struct{}

func (nobody) Output(int, bool, []byte)                 {}
func (nobody) Progress(int, []byte)                     {}
func (nobody) Record(int, launch.Record, time.Duration) {}
func (nobody) Exit(launch.Outcome, time.Duration)       {}
func (nobody) Lost(error)                               {}
func (nobody) Say(string)                               {}

// An agent can send anything: each rank ends at most once, and nothing is said of ranks that are not its own.
func FuzzJob(f *testing.F) {
	f.Add(byte(kindExit), []byte(`{"Rank":1,"Code":3,"Signal":"SIGTERM"}`))
	f.Add(byte(kindOutput), output(7, false, []byte("x\n")).payload)
	f.Add(byte(kindRecord), []byte(`{"Rank":0,"Age":-5}`))
	f.Fuzz(func(t *testing.T, k byte, payload []byte) {
		j := &remoteJob{events: nobody{}, first: 1, n: 2, started: make(chan started, 1), ended: map[int]bool{}, more: make(chan struct{}, 1)}
		first := j.handle(frame{kind(k), payload})
		if kind(k) == kindExit && first == nil {
			var e exit
			if json.Unmarshal(payload, &e) != nil || !j.has(e.Rank) || j.handle(frame{kind(k), payload}) == nil {
				t.Fatalf("%q", payload)
			}
		}
	})
}

// A caller can ask anything of a file to store.
func FuzzCachePath(f *testing.F) {
	f.Add("hcclrun", "00")
	f.Add("../../etc/x", string(bytes.Repeat([]byte("a"), 64)))
	f.Fuzz(func(t *testing.T, name, hash string) {
		t.Setenv("XDG_CACHE_HOME", "/cache")
		if p, err := cachePath(name, hash); err == nil && p != "/cache/gotrain/bin/"+hash+"/"+name {
			t.Fatalf("%q %q: %s", name, hash, p)
		}
	})
}
