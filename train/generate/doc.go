// Package generate generates text with a trained Llama.
//
// A [Generator] holds a model on a device, with room for a fixed number of texts of a fixed maximum length. Prompts are read in chunks, then one
// token is generated for all texts at a time. The keys and values of earlier tokens stay on the device, so each new token reads every weight once and
// its speed is bound by that:
//
//	g, err := generate.New(weights, config, generate.Options{Texts: 1, Room: 512})
//	stats, err := g.Run(ctx, [][]int32{prompt}, generate.Sampling{Temperature: 0.8, TopP: 0.9}, 200, func(text int, id int32) { … })
//
// Texts are independent: text i with a given seed is the same whatever other texts are generated with it, up to the rounding of products that a
// device computes differently for another number of rows.
//
// Sampling runs on the host, in float64: greedy (temperature 0), by temperature, from the k most likely tokens (top-k, arXiv 1805.04833), from the
// smallest set with probability p (top-p, arXiv 1904.09751), or both.
package generate
