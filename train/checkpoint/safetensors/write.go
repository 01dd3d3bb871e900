package safetensors

import (
	"fmt"
	"io"
)

// Size is the size of the file that Write would make, to check for free space.
func Size(tensors []Tensor, metadata map[string]string) (int64, error) {
	_, head, total, err := prepare(tensors, metadata)
	return int64(len(head)) + total, err
}

func prepare(tensors []Tensor, metadata map[string]string) (placed []Tensor, head []byte, total int64, err error) {
	if placed, err = plan(tensors); err != nil {
		return nil, nil, 0, err
	}
	if head, err = encode(placed, metadata); err != nil {
		return nil, nil, 0, err
	}
	if len(placed) > 0 {
		total = placed[len(placed)-1].End
	}
	return placed, head, total, nil
}

// Write writes a file to w. For each tensor, in the order of the file, it calls data, which writes exactly the bytes of the tensor (little-endian,
// row-major), optionally in pieces: no more than a piece need be in memory. Begin and End of tensors are ignored.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string, data func(t Tensor, w io.Writer) error) error {
	placed, head, _, err := prepare(tensors, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return fmt.Errorf("safetensors: write header: %w", err)
	}
	for _, t := range placed {
		part := &counter{w: w, left: t.Bytes()}
		if err := data(t, part); err != nil {
			return fmt.Errorf("safetensors: write tensor %q: %w", t.Name, err)
		}
		if part.left != 0 {
			return fmt.Errorf("safetensors: write tensor %q: %d of its %d bytes are missing", t.Name, part.left, t.Bytes())
		}
	}
	return nil
}

// counter limits a tensor to its number of bytes.
type counter struct {
	w    io.Writer
	left int64
}

func (c *counter) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		return 0, fmt.Errorf("%d bytes more than the tensor's size", int64(len(p))-c.left)
	}
	n, err := c.w.Write(p)
	c.left -= int64(n)
	return n, err
}
