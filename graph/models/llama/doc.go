// Package llama is the Llama family (arXiv 2302.13971, 2307.09288, 2407.21783) in the DSL: RMSNorm before each part, rotary positions, grouped-query attention,
// SwiGLU, no biases. The original's block is x + attention(norm(x)), then x + feed_forward(norm(x)).
//
// Parameters are called as Hugging Face calls them (model.layers.0.self_attn.q_proj.weight), and the rows of q_proj and k_proj lie in
// Hugging Face's order, in which rotary embedding turns the two halves of a head against each other. There is no second order inside
// gotrain; formats that pair neighbours are converted when they are read and written.
package llama
