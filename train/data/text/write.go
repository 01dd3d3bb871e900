package text

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// shards writes the shards of one split.
type shards struct {
	dir, split string
	width      int
	limit      int64
	list       []Shard
	f          *os.File
	n          int64 // ids of the open shard
	buf        []byte
}

// writeBytes is the size of the write buffer.
const writeBytes = 1 << 20

func (s *shards) add(ids []int32) error {
	for len(ids) > 0 {
		if s.f == nil {
			if err := s.begin(); err != nil {
				return fmt.Errorf("text: %w", err)
			}
		}
		room := min((s.limit-headerBytes+int64(s.width)-1)/int64(s.width), maxShardTokens) - s.n
		part := ids[:min(int64(len(ids)), max(1, room), writeBytes)]
		ids = ids[len(part):]
		s.buf = appendIDs(s.buf, part, s.width)
		s.n += int64(len(part))
		var err error
		if int64(len(part)) >= room {
			err = s.end()
		} else if len(s.buf) >= writeBytes {
			err = s.flush()
		}
		if err != nil {
			return fmt.Errorf("text: %w", err)
		}
	}
	return nil
}

func (s *shards) begin() (err error) {
	name := fmt.Sprintf("%s_%06d.bin", s.split, len(s.list))
	s.f, err = os.Create(filepath.Join(s.dir, name))
	s.n, s.list = 0, append(s.list, Shard{File: name})
	s.buf = append(s.buf[:0], make([]byte, headerBytes)...) // filled in at the end
	return err
}

func (s *shards) flush() error {
	_, err := s.f.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

// end completes a shard: the count goes into the header last.
func (s *shards) end() error {
	if s.f == nil {
		return nil
	}
	f := s.f
	s.f = nil
	err := func() error {
		if _, err := f.Write(s.buf); err != nil {
			return err
		}
		var h [headerBytes]byte
		putHeader(h[:], s.width, s.n)
		if _, err := f.WriteAt(h[:], 0); err != nil {
			return err
		}
		return f.Sync()
	}()
	s.list[len(s.list)-1].Tokens = s.n
	return errors.Join(err, f.Close())
}

// finish completes the last shard.
func (s *shards) finish() error {
	if err := s.end(); err != nil {
		return fmt.Errorf("text: %w", err)
	}
	return nil
}

func writeSynced(path string, raw []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
