// Package vit builds vision transformers (arXiv 2010.11929; DeiT, 2012.12877) in the DSL of package graph: pictures cut into patches, a class token, learned
// positions, blocks that normalise first, and a linear classifier.
//
//	logits := vit.Build(b, x, vit.Sized("deit-s")) // [N 1000] for x f32[N 3 224 224]
//
// A DeiT is a ViT of the same size; its name stands for how it is trained ([docs/vit.md]). Parameters with 1000 classes and pictures of 224 pixels: 5 717 416
// (tiny), 22 050 664 (small), 86 567 656 (base), 304 326 632 (large).
//
// Parameters have timm's names and order (cls_token, pos_embed, patch_embed.proj.weight, blocks.0.attn.qkv.weight, …, head.bias), so timm's weights load
// unchanged and timm loads weights saved here. They start as timm's: weights of linear layers and positions normal with a deviation of 0.02, the class token
// with 1e-6, biases with zeros, the patches' projection as PyTorch's convolution. The size of the pictures is that of the input; [Adapt] stretches learned
// positions for another size.
//
// The package is also a family of recipes: it registers the section [vit] in package models.
//
// [docs/vit.md]: https://github.com/gotrain/gotrain/blob/main/docs/vit.md
package vit
