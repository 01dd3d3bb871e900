// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/train/checkpoint/llamafile"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// tokenizerName is the tokenizer beside a random model.
const tokenizerName = "tokenizer.bin"

// writeModel makes a Hugging Face folder with random weights and a tokenizer of the size of its vocabulary. The model knows no token that ends a
// text, so that every text becomes as long as is asked for.
func writeModel(dir string, c llama.Config) error {
	c.BOS, c.EOS = -1, -1
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := llamafile.WriteConfig(dir, c, safetensors.F32); err != nil {
		return err
	}
	if err := create(filepath.Join(dir, "model.safetensors"), func(w io.Writer) error { return writeWeights(w, c) }); err != nil {
		return err
	}
	return create(filepath.Join(dir, tokenizerName), func(w io.Writer) error { return writeTokenizer(w, c.Vocab) })
}

func create(path string, write func(w io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(write(w), w.Flush(), f.Close())
}

// writeWeights draws matrices with the deviation 0.02; norms are 1.
func writeWeights(w io.Writer, c llama.Config) error {
	var ts []safetensors.Tensor
	for _, n := range llamafile.Names(c) {
		ts = append(ts, safetensors.Tensor{Name: n, DType: safetensors.F32, Shape: shapeOf(n, c)})
	}
	draw := rand.New(rand.NewPCG(1, 1))
	return safetensors.Write(w, ts, map[string]string{"format": "pt"}, func(t safetensors.Tensor, w io.Writer) error {
		var b [4]byte
		for range t.Bytes() / 4 {
			v := float32(1)
			if len(t.Shape) > 1 {
				v = float32(draw.NormFloat64() * 0.02)
			}
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(v))
			if _, err := w.Write(b[:]); err != nil {
				return err
			}
		}
		return nil
	})
}

// shapeOf is [rows, columns] of a matrix, [length] of a norm, by Hugging Face's name.
func shapeOf(name string, c llama.Config) []int64 {
	dim, hidden, q, kv := int64(c.Dim), int64(c.Hidden), int64(c.Heads*c.Head()), int64(c.KVHeads*c.Head())
	for part, shape := range map[string][]int64{
		"embed_tokens": {int64(c.Vocab), dim}, "lm_head": {int64(c.Vocab), dim},
		"q_proj": {q, dim}, "k_proj": {kv, dim}, "v_proj": {kv, dim}, "o_proj": {dim, q},
		"gate_proj": {hidden, dim}, "up_proj": {hidden, dim}, "down_proj": {dim, hidden},
	} {
		if strings.Contains(name, part) {
			return shape
		}
	}
	return []int64{dim}
}

// writeTokenizer writes a tokenizer of llama2.c: three special tokens, the bytes, and a letter for every other id.
func writeTokenizer(w io.Writer, vocab int) error {
	var out []byte
	add := func(text string) {
		out = binary.LittleEndian.AppendUint32(out, 0) // the score
		out = binary.LittleEndian.AppendUint32(out, uint32(len(text)))
		out = append(out, text...)
	}
	out = binary.LittleEndian.AppendUint32(out, 8)
	for _, s := range []string{"<unk>", "\n<s>\n", "\n</s>\n"} {
		add(s)
	}
	for b := range 256 {
		add(fmt.Sprintf("<0x%02X>", b))
	}
	for i := 3 + 256; i < vocab; i++ {
		add(string(rune(0x3400 + i))) // Chinese and Korean from here on, which is as many as a vocabulary of 32000 needs
	}
	_, err := w.Write(out)
	return err
}
