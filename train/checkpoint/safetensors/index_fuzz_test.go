package safetensors

import (
	"path/filepath"
	"testing"
)

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":8},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}`))
	f.Add([]byte(`{"weight_map":{"a":"../../etc/passwd"}}`))
	f.Add([]byte(`{"weight_map":{"":""}}`))
	f.Add([]byte(`{"weight_map":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		ix, err := parseIndex(raw)
		if err != nil {
			return
		}
		for name, shard := range ix.WeightMap {
			if at := filepath.Join("/d", shard); at != "/d" && filepath.Dir(at)[:2] != "/d" || filepath.IsAbs(shard) {
				t.Fatalf("%q lies in %q", name, shard)
			}
		}
	})
}
