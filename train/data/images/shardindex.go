package images

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/gotrain/gotrain/internal/usercache"
	"github.com/gotrain/gotrain/train/foreign"
)

// An index is kept in the user's cache, one file a shard: it begins with indexMagic, then the stamp of the shard, its entries, and a checksum of all before it.
// Raise the number in indexMagic when scan has changed what it finds.
const (
	indexMagic = "gotrain shard index 2\n"
	maxIndex   = 1 << 30
)

// stamp tells versions of a file apart. Programs that copy files set the time of a copy to that of the original, but nothing can set change, the time at which
// the file system saw the last change. The number of the file (inode) is not part of it: mounted buckets give a file another one every time.
type stamp struct{ size, time, change int64 }

func stampOf(st fs.FileInfo) stamp { return stamp{st.Size(), st.ModTime().UnixNano(), changeTime(st)} }

// indexShards lists the samples of all shards, from the cache where it knows them. told is called after each shard that was read; it may be nil.
func indexShards(ctx context.Context, files []string, field, cache string, told func(done, all int)) ([][]entry, []stamp, error) {
	lists, stamps, errs := make([][]entry, len(files)), make([]stamp, len(files)), make([]error, len(files))
	var next, done atomic.Int64
	var wait sync.WaitGroup
	var tell sync.Mutex
	for range min(len(files), max(4, runtime.GOMAXPROCS(0))) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := int(next.Add(1)) - 1; i < len(files) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				var fresh bool
				lists[i], stamps[i], fresh, errs[i] = indexShard(ctx, files[i], field, cache)
				n := int(done.Add(1))
				if fresh && told != nil {
					tell.Lock()
					told(n, len(files))
					tell.Unlock()
				}
			}
		}()
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("images: indexing shards: %w", context.Cause(ctx))
	}
	return lists, stamps, errors.Join(errs...)
}

// indexShard lists the samples of one shard. fresh says that the shard was read.
func indexShard(ctx context.Context, file, field, cache string) (list []entry, is stamp, fresh bool, err error) {
	st, err := os.Stat(file)
	if err != nil {
		return nil, is, false, fmt.Errorf("images: %w", err)
	}
	is = stampOf(st)
	kept := ""
	if cache != "" {
		abs, err := filepath.Abs(file)
		if err != nil {
			return nil, is, false, fmt.Errorf("images: %w", err)
		}
		sum := sha256.Sum256([]byte(abs + "\x00" + field))
		kept = filepath.Join(cache, fmt.Sprintf("%x.index", sum[:16]))
		if raw, err := foreign.ReadFile(kept, maxIndex); err == nil {
			if list, err := parseIndex(raw, is); err == nil {
				return list, is, false, nil
			}
		}
	}
	if list, err = scan(ctx, file, field); err != nil {
		return nil, is, true, err
	}
	// A shard that changed while it was read is not kept.
	if after, err := os.Stat(file); kept != "" && err == nil && stampOf(after) == is {
		_ = keepIndex(kept, formatIndex(list, is)) // without it the next run reads the shard again
	}
	return list, is, true, nil
}

// indexFolder is where indexes are kept; "" where there is no place for them.
func indexFolder() string {
	for _, p := range usercache.Places("shards") {
		if dir, err := p.Make(); err == nil {
			usercache.Sweep(dir, "new-")
			return dir
		}
	}
	return ""
}

// keepIndex writes a file that appears whole.
func keepIndex(path string, raw []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func formatIndex(list []entry, is stamp) []byte {
	b := []byte(indexMagic)
	b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, is.size), is.time), is.change)
	b = appendEntries(b, list)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func appendEntries(b []byte, list []entry) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, e := range list {
		b = appendText(appendText(appendText(b, e.key), e.ext), e.word)
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(e.offset)), uint64(e.size))
	}
	return b
}

var errIndex = errors.New("images: the index is damaged, or of another version of the shard")

// parseIndex reads an index, if it is of this version of the shard.
func parseIndex(raw []byte, is stamp) ([]entry, error) {
	n := len(raw) - 4
	if n < len(indexMagic) || !bytes.HasPrefix(raw, []byte(indexMagic)) || binary.LittleEndian.Uint32(raw[n:]) != crc32.ChecksumIEEE(raw[:n]) {
		return nil, errIndex
	}
	rest := raw[len(indexMagic):n]
	for _, want := range []int64{is.size, is.time, is.change} {
		v, k := binary.Varint(rest)
		if k <= 0 || v != want {
			return nil, errIndex
		}
		rest = rest[k:]
	}
	l := listing{rest: rest}
	list := l.entries(is.size)
	if l.err != nil || len(l.rest) > 0 {
		return nil, errIndex
	}
	return list, nil
}

// entries reads what appendEntries wrote, for a shard of this size.
func (l *listing) entries(size int64) []entry {
	n := l.count()
	list := make([]entry, 0, n)
	for range n {
		e := entry{key: l.text(), ext: l.text(), word: l.text()}
		e.offset = int64(l.number(uint64(size) + 1))
		e.size = int64(l.number(uint64(size-e.offset) + 1))
		if l.err != nil {
			return nil
		}
		list = append(list, e)
	}
	return list
}
