// Package generate writes text with a trained Llama.
//
// A [Generator] holds a model on a device with room for some texts of some length. Prompts are read in chunks, then one token is made for all texts at a time; keys and
// values of what was read stay on the device, so each new token reads every weight once and is bound by that:
//
//	g, err := generate.New(weights, config, generate.Options{Texts: 1, Room: 512})
//	stats, err := g.Run(ctx, [][]int32{prompt}, generate.Sampling{Temperature: 0.8, TopP: 0.9}, 200, func(text int, id int32) { … })
//
// Texts do not influence each other, and neither does their number: text i with a seed is the same whatever else is written beside it, up to the rounding of
// products that a device does differently for another number of rows.
//
// Sampling is on the host, in float64: greedy (temperature 0), by temperature, from the k likeliest (arXiv 1805.04833), from the smallest set with
// probability p (arXiv 1904.09751), or both.
package generate
