package text

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// Shard files are llm.c's (dev/data/data_common.py): 256 little-endian int32, of which the first three are magic, version and number of tokens, then the
// tokens. Ids that fit 16 bits are uint16 under the magic of its GPT-2 files, others uint32 under that of its Llama 3 files.
const (
	headerBytes = 256 * 4
	magic16     = 20240520
	version16   = 1
	magic32     = 20240801
	version32   = 7
	// maxShardTokens is the largest count that fits an int32.
	maxShardTokens = 1<<31 - 1
)

// width is the number of bytes of an id below vocab.
func width(vocab int) int {
	if vocab <= 1<<16 {
		return 2
	}
	return 4
}

func putHeader(h []byte, width int, tokens int64) {
	magic, version := uint32(magic16), uint32(version16)
	if width == 4 {
		magic, version = magic32, version32
	}
	binary.LittleEndian.PutUint32(h, magic)
	binary.LittleEndian.PutUint32(h[4:], version)
	binary.LittleEndian.PutUint32(h[8:], uint32(tokens))
}

// readHeader checks the header of a shard against the size of its file.
func readHeader(h []byte, size int64) (width int, tokens int64, err error) {
	if size < headerBytes || len(h) < headerBytes {
		return 0, 0, fmt.Errorf("%d bytes are fewer than the header of a token shard (%d)", size, headerBytes)
	}
	magic, version := binary.LittleEndian.Uint32(h), binary.LittleEndian.Uint32(h[4:])
	switch {
	case magic == magic16 && version == version16:
		width = 2
	case magic == magic32 && version == version32:
		width = 4
	case magic == magic16 || magic == magic32:
		return 0, 0, fmt.Errorf("version %d of token shards is unknown", version)
	default:
		return 0, 0, fmt.Errorf(
			"not a token shard: it begins with %d, not with %d or %d\nhint: create token shards from text with gotrain tokenize",
			magic,
			magic16,
			magic32,
		)
	}
	count := int32(binary.LittleEndian.Uint32(h[8:]))
	if tokens = int64(count); count < 0 {
		return 0, 0, fmt.Errorf("the header gives %d tokens", count)
	}
	if want := headerBytes + tokens*int64(width); want != size {
		return 0, 0, fmt.Errorf("damaged: %d tokens of %d bytes need %d bytes, but the file has %d", tokens, width, want, size)
	}
	return width, tokens, nil
}

// openShard maps one shard.
func openShard(path string) (chunk, func() error, error) {
	raw, unmap, err := safetensors.Map(path)
	if err != nil {
		var named *os.PathError
		if !errors.As(err, &named) {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return chunk{}, nil, fmt.Errorf("text: %w", err)
	}
	w, n, err := readHeader(raw, int64(len(raw)))
	if err != nil {
		return chunk{}, nil, errors.Join(fmt.Errorf("text: %s: %w", path, err), unmap())
	}
	return chunk{where: path, raw: raw[headerBytes:], width: w, n: n}, unmap, nil
}
