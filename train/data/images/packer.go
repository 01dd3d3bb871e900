package images

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/foreign"
)

// Packer writes packed shards: PREFIX-00000.bin, PREFIX-00001.bin, … and, last, PREFIX.json. Open them as PREFIX-*.bin.
type Packer struct {
	prefix string
	limit  int64
	header Header
	file   *os.File
	buf    *bufio.Writer
	err    error
}

// NewPacker starts a set. A shard gets at most perShard records (0: a gigabyte's worth). Files of that name are an error: packed sets are
// never mixed.
func NewPacker(prefix string, l Layout, perShard int64) (*Packer, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if old, _ := foreign.Glob(prefix + "-[0-9]*.bin"); len(old) > 0 {
		return nil, fmt.Errorf("images: %s already exists\nhint: choose another prefix or remove the old set", old[0])
	}
	if perShard <= 0 {
		perShard = max(1, (1<<30)/l.RecordBytes())
	}
	return &Packer{prefix: prefix, limit: perShard, header: Header{Format: packedFormat, Layout: l}}, nil
}

// Append writes one record: Channels × Height × Width bytes, plane by plane. After an error nothing more is written.
func (p *Packer) Append(label int, pix []byte) error {
	if p.err != nil {
		return p.err
	}
	l := p.header.Layout
	if int64(len(pix)) != l.RecordBytes()-4 || label < 0 || label > 1<<31-1 || l.Classes != nil && label >= len(l.Classes) {
		return fmt.Errorf("images: record with label %d (of %d classes) and %d bytes, want %d", label, len(l.Classes), len(pix), l.RecordBytes()-4)
	}
	p.err = p.append(label, pix)
	return p.err
}

func (p *Packer) append(label int, pix []byte) error {
	n := len(p.header.Shards)
	if p.file == nil || p.header.Shards[n-1].Records == p.limit {
		if err := p.finishShard(); err != nil {
			return err
		}
		f, err := os.OpenFile(fmt.Sprintf("%s-%05d.bin", p.prefix, n), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return fmt.Errorf("images: %w", err)
		}
		p.file, p.buf = f, bufio.NewWriterSize(f, 1<<20)
		p.header.Shards = append(p.header.Shards, Shard{File: filepath.Base(f.Name())})
		n++
	}
	var head [4]byte
	binary.LittleEndian.PutUint32(head[:], uint32(label))
	_, err := p.buf.Write(head[:])
	if err == nil {
		_, err = p.buf.Write(pix)
	}
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	p.header.Shards[n-1].Records++
	return nil
}

// finishShard makes the current shard durable.
func (p *Packer) finishShard() error {
	if p.file == nil {
		return nil
	}
	err := errors.Join(p.buf.Flush(), p.file.Sync(), p.file.Close())
	p.file = nil
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	return nil
}

// Close finishes the last shard and writes the header atomically. Without Close there is no header, so the set is recognisably unfinished.
func (p *Packer) Close() error {
	if err := p.finishShard(); err != nil && p.err == nil {
		p.err = err
	}
	if p.err != nil {
		return p.err
	}
	p.err = errors.New("images: the packer is closed")
	if len(p.header.Shards) == 0 {
		return fmt.Errorf("images: nothing was packed into %s", p.prefix)
	}
	raw, err := json.MarshalIndent(p.header, "", "  ")
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	tmp := p.prefix + ".json.tmp"
	f, err := os.Create(tmp)
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	_, err = f.Write(append(raw, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close(), os.Rename(tmp, p.prefix+".json")); err != nil {
		return fmt.Errorf("images: %w", err)
	}
	return nil
}

// Pack writes all pictures of a folder as packed shards: each is resized so that its short side is size, then centre-cropped to size × size
// (256 leaves room for crops of 224). perShard is as for NewPacker. Packing ImageNet takes hours, but later epochs need no decoding; it takes
// 197 kB per picture at 256.
func Pack(ctx context.Context, root string, o FolderOptions, prefix string, size int, perShard int64) error {
	o.Transform, o.Norm = ResizeCrop{Short: size, Width: size, Height: size}, Norm{}
	f, err := NewFolder(root, o)
	if err != nil {
		return err
	}
	p, err := NewPacker(prefix, Layout{Channels: 3, Height: size, Width: size, Classes: f.Classes()}, perShard)
	if err != nil {
		return err
	}
	dst := [][]byte{make([]byte, f.fields[0].Bytes()), make([]byte, 4)}
	pix := make([]byte, 3*size*size)
	for i := range f.Len() {
		err := ctx.Err()
		if err == nil {
			err = f.Load(ctx, data.NewRand(0), i, dst)
		}
		if err == nil {
			for k, v := range data.F32(dst[0]) {
				pix[k] = byte(float32(v*255) + 0.5)
			}
			err = p.Append(f.Label(i), pix)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("images: packing %s, picture %d of %d: %w", root, i, f.Len(), err), p.finishShard())
		}
	}
	return p.Close()
}
