package foreign

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// MaxRatio is the maximum ratio of decompressed to compressed size. Images and weights shrink to a half or a tenth; gzip can reach a thousand.
const MaxRatio = 100

// free is the decompressed size below which the ratio is not checked: a small file of zeros is harmless.
const free = 64 << 20

// ErrBomb is wrapped by the error for compressed data that expand more than real data do.
var ErrBomb = errors.New("expands too far")

// Gunzip reads gzip. Once the output exceeds both 64 MiB and MaxRatio times the input, it fails with ErrBomb.
func Gunzip(r io.Reader) (io.Reader, error) {
	in := &counter{r: r}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	return &gunzip{z: z, in: in}, nil
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

type gunzip struct {
	z   io.Reader
	in  *counter
	out int64
}

func (g *gunzip) Read(p []byte) (int, error) {
	n, err := g.z.Read(p)
	g.out += int64(n)
	if g.out > free && g.out/MaxRatio > g.in.n {
		return 0, fmt.Errorf("compressed data: %w: %d bytes became at least %d", ErrBomb, g.in.n, g.out)
	}
	return n, err
}
