package ddp

import (
	"context"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm/self"
)

func TestOneRank(t *testing.T) {
	ctx := context.Background()
	var landed []int
	e, err := New(ctx, Config{Comm: self.New(), Params: []Param{{Name: "b", Elems: 3}, {Name: "w", Elems: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for s := range int64(3) {
		if err := e.Begin(s, true); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			e.GradF32(i)[0] = float32(s)
			if err := e.Ready(i); err != nil {
				t.Fatal(err)
			}
		}
		st, err := e.Wait(ctx)
		if err != nil || st.Buckets != len(e.Buckets()) {
			t.Fatal(st, err)
		}
		v, err := e.Agree(ctx, Vote{Count: 4, Stop: s == 2})
		if err != nil || v.Count != 4 || len(v.Stop) != int(s/2) {
			t.Fatal(v, err)
		}
	}
	_ = landed
}
