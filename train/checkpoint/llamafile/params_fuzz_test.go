package llamafile

import (
	"math"
	"testing"
)

func FuzzParams(f *testing.F) {
	f.Add([]byte(`{"dim":64,"n_layers":2,"n_heads":8,"n_kv_heads":4,"vocab_size":-1,"multiple_of":32,"norm_eps":1e-5,"rope_theta":10000.0}`), 64, 172, "2048")
	f.Add([]byte(`{"dim":64,"n_layers":2,"n_heads":0,"ffn_dim_multiplier":1e300,"multiple_of":0}`), 0, 0, "x")
	f.Add([]byte(`{"dim":4096,"n_layers":32,"n_heads":32,"use_scaled_rope":true,"rope_theta":500000,"norm_eps":"1e-5"}`), 128256, 14336, "-1")
	f.Fuzz(func(t *testing.T, raw []byte, vocab, hidden int, meta string) {
		shapes := map[string][]int{"tok_embeddings.weight": {vocab, 64}, "layers.0.feed_forward.w1.weight": {hidden, 64}}
		c, err := parseParams(raw, shapes, map[string]string{metaContext: meta, metaFactor: meta, metaBOS: meta, metaEOS: meta})
		if err != nil || limits(c) != nil {
			return
		}
		if n := c.Params(); n <= 0 || math.IsNaN(c.Theta) || math.IsNaN(c.NormEps) {
			t.Fatalf("accepted %+v of %d parameters", c, n)
		}
	})
}
