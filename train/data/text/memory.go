package text

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"strings"
)

// FromText tokenises files (or all files below directories) and keeps the ids in memory, two bytes each if the vocabulary allows. val is
// nil without a ValFraction.
func FromText(ctx context.Context, inputs []string, o Options) (train, val *Corpus, err error) {
	if err := o.check(); err != nil {
		return nil, nil, err
	}
	files, total, err := expand(inputs)
	if err != nil {
		return nil, nil, err
	}
	w := width(o.Tokenizer.Vocab())
	parts := [2]*memory{{width: w}, {width: w}}
	s := newSplitter(o.ValFraction, parts[0], parts[1])
	if _, err := tokenise(ctx, files, total, &o, s.add); err != nil {
		return nil, nil, err
	}
	if err := s.finish(); err != nil {
		return nil, nil, err
	}
	base := make([]string, len(inputs))
	for i, in := range inputs {
		base[i] = filepath.Base(in)
	}
	name, info := strings.Join(base, ", "), infoOf(o.Tokenizer, o.BOS, o.EOS)
	train = parts[0].corpus(name, info, s.docs[0], s.top[0])
	if o.ValFraction > 0 {
		val = parts[1].corpus(name+" ("+Val+")", info, s.docs[1], s.top[1])
	}
	return train, val, nil
}

// memory holds ids in the format of shards.
type memory struct {
	width int
	raw   []byte
}

func (m *memory) add(ids []int32) error {
	m.raw = appendIDs(m.raw, ids, m.width)
	return nil
}

func (m *memory) corpus(name string, info Info, docs int64, top int32) *Corpus {
	c := &Corpus{name: name, info: info, documents: docs, maxID: func() (int32, error) { return top, nil }}
	c.add(chunk{raw: m.raw, width: m.width, n: int64(len(m.raw) / m.width)})
	return c
}

// appendIDs appends ids in the format of a shard.
func appendIDs(raw []byte, ids []int32, width int) []byte {
	for _, id := range ids {
		if width == 2 {
			raw = binary.LittleEndian.AppendUint16(raw, uint16(id))
		} else {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(id))
		}
	}
	return raw
}
