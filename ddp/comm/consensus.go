package comm

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// Item is something that ranks must agree on: a parameter's shape, the hash of a weight, a line of the recipe.
type Item struct {
	Name string
	Text string // the value, compared and shown in the message; hash long values
}

// ConsensusError names the first item on which ranks differ.
type ConsensusError struct {
	What  string // what was compared
	Index int    // of the item in the list
	Ranks []int  // ranks that differ from rank 0
	Mine  string // the item on rank 0
	Its   string // the item on Ranks[0]
}

func (e *ConsensusError) Error() string {
	return fmt.Sprintf("comm: ranks disagree on %s: item %d is %s on rank 0, but %s on rank %d (differing ranks: %v)",
		e.What, e.Index, e.Mine, e.Its, e.Ranks[0], e.Ranks)
}

// Consensus checks that all ranks hold the same list. Every rank must call it; all get the same result. Equal lists
// cost one tiny all-reduce (min and max of a hash, as KungFu does); otherwise Consensus finds the first difference and
// returns a *ConsensusError that names it.
func Consensus(ctx context.Context, c Communicator, what string, items []Item) error {
	hashes := make([]uint64, len(items))
	all := fnv.New64a()
	for i, it := range items {
		hashes[i] = it.hash()
		binary.Write(all, binary.LittleEndian, hashes[i])
	}
	h := int64(all.Sum64() >> 1) // non-negative: its complement is exact
	n := int64(len(items))
	v := []int64{h, n, -h, -n}
	if err := Wait(ctx)(c.AllReduce(ctx, HostOf(v), Max)); err != nil {
		return fmt.Errorf("comm: agreeing on %s: %w", what, err)
	}
	if v[0] == -v[2] && v[1] == -v[3] {
		return nil
	}
	return explain(ctx, c, what, items, hashes, int(v[1]))
}

// explain gathers the hashes of all items, then the two texts to show.
func explain(ctx context.Context, c Communicator, what string, items []Item, hashes []uint64, longest int) error {
	size := c.Size()
	mine := make([]int64, longest)
	for i := range mine {
		mine[i] = -1 // no such item
		if i < len(hashes) {
			mine[i] = int64(hashes[i] >> 1)
		}
	}
	table := make([]int64, longest*size)
	if err := Wait(ctx)(c.AllGather(ctx, HostOf(table), HostOf(mine))); err != nil {
		return fmt.Errorf("comm: comparing %s: %w", what, err)
	}
	e := &ConsensusError{What: what}
	for e.Index = 0; e.Index < longest && e.Ranks == nil; e.Index++ {
		for r := 1; r < size; r++ {
			if table[r*longest+e.Index] != table[e.Index] {
				e.Ranks = append(e.Ranks, r)
			}
		}
	}
	e.Index--
	text := make([]byte, 512)
	copy(text, "missing")
	if e.Index < len(items) {
		clear(text)
		copy(text, fmt.Sprintf("%s = %s", items[e.Index].Name, items[e.Index].Text))
	}
	texts := make([]byte, len(text)*size)
	if err := Wait(ctx)(c.AllGather(ctx, Host(texts, npu.U8), Host(text, npu.U8))); err != nil {
		return fmt.Errorf("comm: comparing %s: %w", what, err)
	}
	leave(ctx, c)
	show := func(r int) string {
		return string(bytes.TrimRight(texts[r*len(text):(r+1)*len(text)], "\x00"))
	}
	if e.Ranks == nil {
		return fmt.Errorf("comm: ranks disagree on %s, but no single item differs", what)
	}
	e.Mine, e.Its = show(0), show(e.Ranks[0])
	return e
}

// leave waits until all ranks have what they need for their message: the first one to end takes the group with it. Failures are of no interest.
func leave(ctx context.Context, c Communicator) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = Wait(ctx)(c.AllReduce(ctx, HostOf([]int64{0}), Max)) // see above
}

func (it Item) hash() uint64 {
	f := fnv.New64a()
	f.Write([]byte(it.Name))
	f.Write([]byte{0})
	f.Write([]byte(it.Text))
	return f.Sum64()
}

// Wait waits for the handle that a call returned, so that a blocking collective is one expression:
//
//	err := comm.Wait(ctx)(c.AllReduce(ctx, m, comm.Sum))
func Wait(ctx context.Context) func(Handle, error) error {
	return func(h Handle, err error) error {
		if err != nil {
			return err
		}
		return h.Wait(ctx)
	}
}
