package llama_test

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data/text"
	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// A small custom Llama trains for a few steps on the opening of Shakespeare.
func ExampleConfig_Loss() {
	const data = "../../../recipes/data/"
	tok, err := tokenizer.Open(data + "stories260k/tok512.bin")
	if err != nil {
		fmt.Println(err)
		return
	}
	words, _, err := text.FromText(context.Background(), []string{data + "shakespeare/val.txt"}, text.Options{Tokenizer: tok, BOS: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	const seq = 16
	src, err := text.NewSource(words, text.SourceOptions{Seq: seq, Vocab: tok.Vocab()})
	if err != nil {
		fmt.Println(err)
		return
	}
	shape := llama.Config{
		Dim:     16,
		Hidden:  32,
		Layers:  1,
		Heads:   2,
		KVHeads: 1,
		Vocab:   tok.Vocab(),
		Context: seq,
		Theta:   1e4,
		NormEps: 1e-5,
		Tied:    true,
		BOS:     1,
		EOS:     2,
	}
	model := func(b *graph.Builder, in train.Inputs) train.Outputs {
		loss, count := shape.Loss(b, llama.Batch{Tokens: in["tokens"]}, in["targets"], llama.Weights{})
		return train.Outputs{Loss: loss, Count: count, Items: train.Items{Name: "tokens", Short: "tok", PerSample: seq, Likelihood: true}}
	}
	adamw := optim.Default(optim.AdamW, 0.1)
	adamw.Beta2 = 0.95
	t, err := train.New(
		train.WithModel(model), train.WithData(src, 4), train.WithSteps(30), train.WithClipNorm(1),
		train.WithOptimizer(adamw), train.WithLR(1e-2), train.WithDevice("ref", 1),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := t.Run(context.Background())
	fmt.Println(shape.Params(), "parameters,", res.Steps, "steps; below the loss of guessing, 6.2:", res.Loss < 5.6, err)
	// Output: 10544 parameters, 30 steps; below the loss of guessing, 6.2: true <nil>
}
