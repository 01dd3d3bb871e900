package vit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Config describes a network. Make one with Sized, or set Dim, Depth and Heads; other zero values are the usual ones.
type Config struct {
	Dim      int     `json:"dim"` // width of a token
	Depth    int     `json:"depth"`
	Heads    int     `json:"heads"`               // of attention; they divide Dim
	Patch    int     `json:"patch,omitempty"`     // width and height of a patch in pixels; 0 is 16
	MLP      float64 `json:"mlp_ratio,omitempty"` // hidden width of the feed-forward layers, as a multiple of Dim; 0 is 4
	Classes  int     `json:"classes,omitempty"`   // 0 is 1000
	NoQKV    bool    `json:"no_qkv_bias,omitempty"`
	NoToken  bool    `json:"no_class_token,omitempty"` // patches only; then Mean
	Mean     bool    `json:"mean,omitempty"`           // classify the mean of the patches, normalised by fc_norm, instead of the class token
	Eps      float64 `json:"eps,omitempty"`            // of the norms; 0 is 1e-6
	Dropout  float64 `json:"dropout,omitempty"`        // after the positions and after each linear layer of a block but qkv (arXiv 2010.11929, B.1)
	DropPath float64 `json:"drop_path,omitempty"`      // of the last block, in training; it grows linearly from 0 in the first one (stochastic depth)
	InitStd  float64 `json:"init_std,omitempty"`       // of linear layers and positions; 0 is 0.02
}

// sizes are the published widths, depths and heads. Those of DeiT and ViT are the same.
var sizes = map[string]Config{
	"ti": {Dim: 192, Depth: 12, Heads: 3},
	"s":  {Dim: 384, Depth: 12, Heads: 6},
	"b":  {Dim: 768, Depth: 12, Heads: 12},
	"l":  {Dim: 1024, Depth: 24, Heads: 16},
}

// Sized is a published network: "deit-ti", "deit-s", "deit-b", "vit-ti", "vit-s", "vit-b" or "vit-l". Of another name, the zero Config, which Build refuses.
func Sized(name string) Config {
	family, size, _ := strings.Cut(name, "-")
	if family != "vit" && family != "deit" || family == "deit" && size == "l" {
		return Config{}
	}
	return sizes[size]
}

// check fills in defaults and names every fault.
func (c Config) check() (Config, error) {
	or := func(at *int, v int) {
		if *at == 0 {
			*at = v
		}
	}
	number := func(at *float64, v float64) {
		if *at == 0 {
			*at = v
		}
	}
	or(&c.Patch, 16)
	or(&c.Classes, 1000)
	number(&c.MLP, 4)
	number(&c.Eps, 1e-6)
	number(&c.InitStd, 0.02)
	var errs []error
	need := func(ok bool, format string, a ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("vit: "+format, a...))
		}
	}
	for name, v := range map[string]int{"dim": c.Dim, "depth": c.Depth, "heads": c.Heads, "patch": c.Patch, "classes": c.Classes} {
		need(v > 0, "%s is %d, must be at least 1", name, v)
	}
	need(c.Heads < 1 || c.Dim%c.Heads == 0, "%d heads do not divide a width of %d", c.Heads, c.Dim)
	need(c.MLP > 0 && c.hidden() > 0, "mlp_ratio is %g, must be above 0", c.MLP)
	need(c.Eps > 0 && c.Eps < 1, "eps is %g, must be between 0 and 1", c.Eps)
	need(c.InitStd > 0, "init_std is %g, must be above 0", c.InitStd)
	need(c.Dropout >= 0 && c.Dropout < 1 && c.DropPath >= 0 && c.DropPath < 1, "dropout %g and drop_path %g must lie in 0…1, without 1", c.Dropout, c.DropPath)
	need(c.Mean || !c.NoToken, "a network without class token classifies the mean of its patches: set Mean")
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return c, errors.Join(errs...)
}

// hidden is the width of the feed-forward layers.
func (c Config) hidden() int { return int(float64(c.Dim) * c.MLP) }

// prefix is the number of tokens in front of the patches.
func (c Config) prefix() int {
	if c.NoToken {
		return 0
	}
	return 1
}

// Recognise guesses from the names of parameters which network they belong to: "a ViT of 12 blocks", or "" where they are none.
func Recognise(names []string) string {
	blocks := map[int]bool{}
	for _, name := range names {
		var i int
		if n, _ := fmt.Sscanf(name, "blocks.%d.attn.qkv.weight", &i); n == 1 && strings.HasSuffix(name, ".attn.qkv.weight") {
			blocks[i] = true
		}
	}
	if n := len(blocks); n > 0 && slices.Contains(names, "pos_embed") && slices.Max(slices.Collect(maps.Keys(blocks))) == n-1 {
		return fmt.Sprintf("a ViT of %d blocks", n)
	}
	return ""
}
