//go:build !amd64

package shm

import "sync/atomic"

func storeRelease(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// fence is not needed after an atomic store.
func (c *Comm) fence() {}

func pause() {}
