package tfjs

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// Convert writes what Load reads from at to a safetensors file.
func Convert(ctx context.Context, at, out string) error {
	tensors, err := Load(ctx, at)
	if err != nil {
		return err
	}
	return Write(ctx, tensors, out)
}

// Write writes tensors to a safetensors file. It appears under its name only when complete, and replaces an existing one.
func Write(ctx context.Context, tensors []Tensor, out string) error {
	f, err := os.CreateTemp(filepath.Dir(out), "."+filepath.Base(out)+".*")
	if err != nil {
		return fmt.Errorf("tfjs: write %s: %w", out, err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = encode(ctx, w, tensors)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Chmod(0o644) // temporary files are private
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), out)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("tfjs: write %s: %w", out, err)
	}
	return nil
}

// metadata describe the file for readers without this package.
var metadata = map[string]string{
	"format":  "pt",
	"source":  "npm " + Package + ", ResNet50/ (Keras ResNet50, ImageNet)",
	"licence": "MIT",
	"network": "resnet50 v1 (stride in the first 1x1), batch norm eps 1e-3",
	"input":   "RGB, values 0..255 minus (123.68, 116.779, 103.939), not scaled",
}

func encode(ctx context.Context, w io.Writer, tensors []Tensor) error {
	data := map[string][]float32{}
	var list []safetensors.Tensor
	for _, t := range tensors {
		s := safetensors.Tensor{Name: t.Name, DType: safetensors.F32}
		for _, d := range t.Shape {
			s.Shape = append(s.Shape, int64(d))
		}
		list, data[t.Name] = append(list, s), t.Data
	}
	var buf []byte
	return safetensors.Write(w, list, metadata, func(t safetensors.Tensor, w io.Writer) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		buf = buf[:0]
		for _, v := range data[t.Name] {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
		}
		_, err := w.Write(buf)
		return err
	})
}
