// Package llama is the Llama family (arXiv 2302.13971, 2307.09288, 2407.21783) in the DSL: RMSNorm before each part, rotary positions, grouped-query attention,
// SwiGLU, no biases. The original's block is x + attention(norm(x)), then x + feed_forward(norm(x)).
//
// Parameters have Hugging Face's names (model.layers.0.self_attn.q_proj.weight), and the rows of q_proj and k_proj are in
// Hugging Face's order, in which rotary embedding pairs the two halves of a head. gotrain uses only this order;
// formats that pair neighbours are converted when read and written.
package llama
