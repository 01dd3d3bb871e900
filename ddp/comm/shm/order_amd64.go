package shm

import "sync/atomic"

// storeRelease stores so that everything stored before is seen by whoever sees v. Unlike atomic.StoreUint64 it does not wait until the cache
// line has come over from the core that looks at it: the wait for the peers' lines then overlaps with that. Every store of an x86 processor is a
// release; in assembly, so that the compiler keeps it where it is.
//
//go:noescape
func storeRelease(p *uint64, v uint64)

// fence makes sure that stores before it are visible before loads after it. Any locked instruction is one.
func (c *Comm) fence() { atomic.AddUint32(&c.fenced, 1) }
