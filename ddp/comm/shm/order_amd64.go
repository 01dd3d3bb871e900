package shm

import "sync/atomic"

// storeRelease stores v so that all earlier stores are visible to a reader that sees v. Unlike atomic.StoreUint64 it does not wait until the cache
// line has arrived from the core that polls it, so this overlaps with the wait for the peers' lines. Every store of an x86 processor is a
// release; assembly keeps the compiler from moving it.
//
//go:noescape
func storeRelease(p *uint64, v uint64)

// fence makes earlier stores visible before later loads. Any locked instruction does that.
func (c *Comm) fence() { atomic.AddUint32(&c.fenced, 1) }

// pause tells the processor that this is a loop that polls: another rank may be at work on the other thread of the same core, and the loop ends faster.
func pause()
