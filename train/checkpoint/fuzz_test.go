package checkpoint

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"
)

func FuzzManifest(f *testing.F) {
	m := Manifest{Format: 1, Step: 7, Serial: 3, Time: time.Unix(0, 0).UTC(), Files: []Entry{{StateFile, 12, "ab"}, {ModelFile, 1 << 40, ""}}}
	raw, err := m.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw, int64(7))
	f.Add(raw[:len(raw)/2], int64(7))
	f.Add([]byte(`{"format":1,"files":[{"name":"../x","size":-1}]}`), int64(0))
	f.Add([]byte(`{"format":99}`), int64(0))
	f.Fuzz(func(t *testing.T, raw []byte, step int64) {
		m, err := decodeManifest(raw, step)
		if err != nil {
			// The checksum rejects nearly all inputs, so they are also tried with a correct one.
			var forged Manifest
			if json.Unmarshal(raw, &forged) != nil {
				return
			}
			if raw, err = forged.encode(); err != nil {
				return
			}
			if m, err = decodeManifest(raw, step); err != nil {
				return
			}
		}
		if m.Step != step || m.Format < 1 || m.Format > Format {
			t.Fatalf("accepted step %d, format %d", m.Step, m.Format)
		}
		for _, e := range m.Files {
			if filepath.Base(e.Name) != e.Name || e.Name == ManifestFile || e.Size < 0 {
				t.Fatalf("accepted the file %q of %d bytes", e.Name, e.Size)
			}
		}
		if m.Bytes() < 0 {
			t.Fatalf("all files together have %d bytes", m.Bytes())
		}
	})
}

func FuzzState(f *testing.F) {
	raw, err := State{Step: 5, Epoch: 1, Recipe: "x = 1\n", Metrics: map[string]float64{"loss": 1}, Sampler: json.RawMessage(`{}`)}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add(raw[:len(raw)-4])
	f.Add([]byte(`{"format":1,"step":-1,"world":0}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := decodeState(raw)
		if err != nil {
			return
		}
		if s.Format < 1 || s.Format > Format || s.Step < 0 || s.Epoch < 0 || s.Samples < 0 {
			t.Fatalf("accepted %+v", s)
		}
		again, err := s.encode()
		if err != nil {
			t.Fatalf("a state that was read cannot be written: %v", err)
		}
		if _, err := decodeState(again); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}
