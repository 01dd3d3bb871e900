package pmix

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Client is a connection to the launcher. It serves one goroutine at a time.
type Client struct {
	lib  lib
	mu   sync.Mutex
	dead error
}

// lib is the part of libpmix that is used, so that the rest can be tested without it. Each returns a code of PMIx.
type lib interface {
	init() int
	put(key, value string) int
	commit() int
	fence() int
	get(rank uint32, key string) (string, int)
	finalize() int
	explain(rc int) string
}

// Open connects to the launcher with the library at path, which Find has returned.
func Open(path string) (*Client, error) {
	l, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("pmix: %w", err)
	}
	return newClient(l)
}

func newClient(l lib) (*Client, error) {
	if rc := l.init(); rc != 0 {
		return nil, failed(l, "PMIx_Init", rc)
	}
	return &Client{lib: l}, nil
}

func failed(l lib, function string, rc int) error {
	return fmt.Errorf("pmix: %s: %s (%d)", function, l.explain(rc), rc)
}

// Put stores a value under a key of this rank.
func (c *Client) Put(ctx context.Context, key, value string) error {
	if key == "" || len(key) > 511 || value == "" {
		return fmt.Errorf("pmix: cannot store %q under %q", value, key)
	}
	return c.call(ctx, func() error {
		if rc := c.lib.put(key, value); rc != 0 {
			return failed(c.lib, "PMIx_Put", rc)
		}
		if rc := c.lib.commit(); rc != 0 {
			return failed(c.lib, "PMIx_Commit", rc)
		}
		return nil
	})
}

// Barrier waits for all ranks of the job, and collects what they have put.
func (c *Client) Barrier(ctx context.Context) error {
	return c.call(ctx, func() error {
		if rc := c.lib.fence(); rc != 0 {
			return failed(c.lib, "PMIx_Fence", rc)
		}
		return nil
	})
}

// Get returns a value of rank 0.
func (c *Client) Get(ctx context.Context, key string) (value string, err error) {
	err = c.call(ctx, func() error {
		v, rc := c.lib.get(0, key)
		if rc != 0 {
			return failed(c.lib, "PMIx_Get", rc)
		}
		value = v
		return nil
	})
	return value, err
}

// Close leaves the launcher in order. It does nothing where a call is still in the library.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil {
		return nil
	}
	c.dead = errors.New("pmix: closed")
	if rc := c.lib.finalize(); rc != 0 {
		return failed(c.lib, "PMIx_Finalize", rc)
	}
	return nil
}

// call runs f on its own goroutine, because the library's calls do not end with ctx.
func (c *Client) call(ctx context.Context, f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil {
		return c.dead
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		c.dead = fmt.Errorf("pmix: no answer of the launcher: %w", context.Cause(ctx))
		return c.dead
	}
}
