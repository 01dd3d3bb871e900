package text

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sort"
	"sync"

	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// Info describes what the ids of a corpus mean.
type Info struct {
	Tokenizer   string `json:"kind"`        // tokenizer.Kinds; "" if unknown
	Fingerprint string `json:"fingerprint"` // of the tokenizer
	Vocab       int    `json:"vocab"`       // ids are below this; 0 if unknown
	BOS         int32  `json:"bos"`         // -1: none
	EOS         int32  `json:"eos"`         // -1: none
	// BOSAdded and EOSAdded: every document begins with BOS, ends with EOS. They mark the boundaries of documents.
	BOSAdded bool `json:"bos_added"`
	EOSAdded bool `json:"eos_added"`
}

func infoOf(t tokenizer.Tokenizer, bos, eos bool) Info {
	return Info{Tokenizer: t.Kind(), Fingerprint: t.Fingerprint(), Vocab: t.Vocab(), BOS: t.BOS(), EOS: t.EOS(), BOSAdded: bos, EOSAdded: eos}
}

// begins reports whether a document begins with id, which follows prev.
func (i Info) begins(prev, id int32) bool {
	if i.BOSAdded {
		return id == i.BOS
	}
	return i.EOSAdded && prev == i.EOS
}

// chunk holds ids in little-endian bytes: a mapped shard, or memory.
type chunk struct {
	where string
	raw   []byte
	width int
	n     int64
	first int64 // place of its first id in the corpus
}

// Corpus is a sequence of ids: consecutive documents, in shards or in memory. It may be read concurrently.
type Corpus struct {
	name      string
	info      Info
	documents int64 // 0: not known
	chunks    []chunk
	n         int64

	mu     sync.RWMutex // Close against Read
	closed bool
	unmap  []func() error
	maxID  func() (int32, error)
}

// Name tells where the corpus comes from.
func (c *Corpus) Name() string { return c.name }

// Info returns what the ids mean.
func (c *Corpus) Info() Info { return c.info }

// Len is the number of ids.
func (c *Corpus) Len() int64 { return c.n }

// Documents is the number of documents; 0 if unknown, as for shards without a manifest.
func (c *Corpus) Documents() int64 { return c.documents }

// Delimited returns the corpus with different document boundaries, for foreign shards: every document begins with bos, or ends with eos; -1: it
// does not. (llm.c's begin with <|endoftext|>: Delimited(50256, -1).) The memory is shared; close the original.
func (c *Corpus) Delimited(bos, eos int32) *Corpus {
	d := &Corpus{name: c.name, info: c.info, documents: c.documents, chunks: c.chunks, n: c.n, maxID: c.maxID}
	if d.info.BOSAdded = bos >= 0; bos >= 0 {
		d.info.BOS = bos
	}
	if d.info.EOSAdded = eos >= 0; eos >= 0 {
		d.info.EOS = eos
	}
	return d
}

// Match rejects a tokenizer that gives the ids a different meaning. A corpus of unknown tokenizer matches any tokenizer that has its ids.
func (c *Corpus) Match(t tokenizer.Tokenizer) error {
	if c.info.Fingerprint == "" {
		return c.CheckVocab(t.Vocab())
	}
	if fp := t.Fingerprint(); fp != c.info.Fingerprint {
		return fmt.Errorf("text: %s was made with another tokenizer: a %s of %d ids (%s), not this %s of %d (%s)\n"+
			"hint: use that tokenizer, or recreate the shards with gotrain tokenize",
			c.name, c.info.Tokenizer, c.info.Vocab, c.info.Fingerprint, t.Kind(), t.Vocab(), fp)
	}
	return nil
}

// CheckVocab rejects a model vocabulary that does not cover the ids.
func (c *Corpus) CheckVocab(vocab int) error {
	top, err := c.MaxID()
	if err == nil && int(top) >= vocab {
		err = fmt.Errorf("text: %s has id %d, but the model's vocabulary has only %d\nhint: use the model's own tokenizer", c.name, top, vocab)
	}
	return err
}

// MaxID returns the greatest id, or -1 for an empty corpus. Shards without a manifest are scanned once.
func (c *Corpus) MaxID() (int32, error) { return c.maxID() }

func (c *Corpus) scanMax() (int32, error) {
	buf := make([]int32, 1<<14)
	top := int32(-1)
	for at := int64(0); at < c.n; at += int64(len(buf)) {
		part := buf[:min(int64(len(buf)), c.n-at)]
		if err := c.Read(part, at); err != nil {
			return 0, err
		}
		top = max(top, slices.Max(part))
	}
	return top, nil
}

// add appends a chunk while the corpus is made.
func (c *Corpus) add(k chunk) {
	k.first = c.n
	c.n += k.n
	c.chunks = append(c.chunks, k)
}

// Read copies the ids from a position into dst. If a mapped shard has been truncated, Read returns an error instead of crashing the process.
func (c *Corpus) Read(dst []int32, from int64) (err error) {
	if from < 0 || from+int64(len(dst)) > c.n {
		return fmt.Errorf("text: %s has %d ids; cannot read %d from position %d", c.name, c.n, len(dst), from)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return fmt.Errorf("text: %s is closed", c.name)
	}
	k := sort.Search(len(c.chunks), func(i int) bool { return c.chunks[i].first > from }) - 1
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("text: %s: a shard can no longer be read: %v\nhint: check whether the file was truncated or its disk removed", c.name, p)
		}
	}()
	for len(dst) > 0 {
		ch := &c.chunks[k]
		at := from - ch.first
		n := min(int64(len(dst)), ch.n-at)
		ch.copy(dst[:n], at)
		dst, from, k = dst[n:], from+n, k+1
	}
	return nil
}

func (c *chunk) copy(dst []int32, at int64) {
	raw := c.raw[at*int64(c.width) : (at+int64(len(dst)))*int64(c.width)]
	if c.width == 2 {
		for i := range dst {
			dst[i] = int32(binary.LittleEndian.Uint16(raw[2*i:]))
		}
		return
	}
	for i := range dst {
		dst[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
	}
}

// place names the shard and position of an id.
func (c *Corpus) place(at int64) string {
	k := sort.Search(len(c.chunks), func(i int) bool { return c.chunks[i].first > at }) - 1
	if k < 0 || c.chunks[k].where == "" {
		return fmt.Sprintf("%s, token %d", c.name, at)
	}
	return fmt.Sprintf("%s, token %d", c.chunks[k].where, at-c.chunks[k].first)
}

// fingerprint hashes what the ids mean, how many there are in all, and some of them, spread over the whole. It does not depend on names or
// on how shards are cut.
func (c *Corpus) fingerprint() (string, error) {
	const spots, each = 64, 64
	h := sha256.New()
	fmt.Fprintln(h, c.info, c.n)
	var buf [each]int32
	for i := range int64(spots) {
		from := i * max(0, c.n-each) / (spots - 1)
		part := buf[:min(each, c.n)]
		if err := c.Read(part, from); err != nil {
			return "", err
		}
		if err := binary.Write(h, binary.LittleEndian, part); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// Close unmaps the shards. Reading afterwards is an error.
func (c *Corpus) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var errs []error
	for _, f := range c.unmap {
		errs = append(errs, f())
	}
	c.unmap = nil
	return errors.Join(errs...)
}
