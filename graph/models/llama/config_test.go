package llama

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// The parameter counts that Meta publishes (model cards; computed ones agree to the last digit).
func TestPublishedParameterCounts(t *testing.T) {
	for name, want := range map[string]int64{
		"llama2-7b": 6738415616, "llama2-13b": 13015864320, "llama2-70b": 68976648192, "llama3-8b": 8030261248, "llama3-70b": 70553706496,
		"llama3.1-405b": 405853388800, "llama3.2-1b": 1235814400, "llama3.2-3b": 3212749824, "stories260k": 260032, "stories15m": 15191712,
	} {
		c, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := c.Params(); got != want {
			t.Errorf("%s: %d parameters, want %d", name, got, want)
		}
	}
}

func TestFeedForward(t *testing.T) {
	for _, c := range []struct {
		dim, multiple, want int
		factor              float64
	}{{4096, 256, 11008, 0}, {5120, 256, 13824, 0}, {8192, 4096, 28672, 1.3}, {4096, 1024, 14336, 1.3}, {288, 32, 768, 0}} {
		if got := FeedForward(c.dim, c.factor, c.multiple); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

func TestBadConfigs(t *testing.T) {
	if _, err := Named("llama9"); err == nil || !strings.Contains(err.Error(), "llama3-8b") {
		t.Errorf("got %v", err)
	}
	c := sizes["tiny"]
	c.Heads, c.KVHeads, c.Theta = 3, 2, 0
	err := c.Check()
	for _, want := range []string{"3 heads do not divide a width of 128", "3 heads do not divide among 2", "theta is 0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// Every model can be built, and has the parameters that Params says.
func TestBuildsEverySize(t *testing.T) {
	for _, name := range Names() {
		c, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		b := graph.New()
		loss, _ := c.Loss(b, Batch{Tokens: b.Input("tokens", npu.I32, 1, 8)}, b.Input("targets", npu.I32, 1, 8), Weights{})
		b.Loss(loss)
		g, err := b.Lower()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n, trained := int64(0), 0
		for _, p := range b.Params() {
			n += p.Shape.Elems()
		}
		for _, tr := range g.Trained {
			if tr.Grad != plan.None {
				trained++
			}
		}
		if n != c.Params() || trained != len(b.Params()) {
			t.Errorf("%s: %d parameters in %d tensors, want %d; %d tensors are trained", name, n, len(b.Params()), c.Params(), trained)
		}
	}
}

func Example() {
	c, err := Named("stories15m")
	if err != nil {
		panic(err)
	}
	b := graph.New()
	loss, count := c.Loss(b, Batch{Tokens: b.Input("tokens", npu.I32, 8, 256)}, b.Input("targets", npu.I32, 8, 256), Weights{})
	fmt.Println(c.Params(), b.Desc(loss), b.Desc(count), b.Err())
	for _, p := range b.Params()[:3] {
		fmt.Println(p.Name, p.Shape)
	}
	// Output:
	// 15191712 f32[] f32[] <nil>
	// model.embed_tokens.weight [32000 288]
	// model.layers.0.input_layernorm.weight [288]
	// model.layers.0.self_attn.q_proj.weight [288 288]
}
