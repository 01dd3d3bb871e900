package nodes

import "github.com/gotrain/gotrain/ddp/comm"

// job is how a call travels: what its greeting carries, and its pieces. A nil function has nothing to do; a nil Handle is no call.
type job struct {
	carry  carry
	pieces int
	pack   func(p int)                      // copies to scratch memory
	before func(p int) (comm.Handle, error) // inside the node
	mid    func(p int)                      // copies in between
	rail   func(p int) (comm.Handle, error) // between nodes
	after  func(p int) (comm.Handle, error) // inside the node
	unpack func(p int)                      // copies from scratch memory
	a      comm.Handle                      // before of the latest piece
}

// ring is how many pieces are between pack and unpack at most.
const ring = 3

// Note [pieces]
//
// All ranks of a node make their inner calls in the same order, and all ranks of a rail their outer ones: before(0), before(1), after(0), before(2),
// after(1), … So piece p+1 is reduced inside the node while p is on the wire. Two pieces are on the wire at once, so that it does not fall
// idle between them.

// begin packs a piece and starts its first stage.
func (c *Comm) begin(k *call, j *job, p int) (err error) {
	if j.pack != nil {
		j.pack(p)
	}
	j.a = nil
	if j.before != nil {
		if j.a, err = c.fly(j.before(p)); err != nil {
			return c.explain(k, inwards, err)
		}
	}
	return nil
}

// pump moves the pieces of a call, of which the first has begun.
func (c *Comm) pump(k *call, j *job) (err error) {
	var x, b [ring]comm.Handle
	finish := func(p int) error { // frees the scratch memory of a piece
		if err := c.land(b[p%ring]); err != nil {
			return c.explain(k, inwards, err)
		}
		if j.unpack != nil {
			j.unpack(p)
		}
		return nil
	}
	last := func(p int) error {
		if err := c.land(x[p%ring]); err != nil {
			return c.explain(k, outwards, err)
		}
		b[p%ring] = nil
		if j.after != nil {
			if b[p%ring], err = c.fly(j.after(p)); err != nil {
				return c.explain(k, inwards, err)
			}
		}
		return nil
	}
	for p := range j.pieces {
		if err := c.land(j.a); err != nil {
			return c.explain(k, inwards, err)
		}
		if j.mid != nil {
			j.mid(p)
		}
		x[p%ring] = nil
		if c.outer != nil {
			if x[p%ring], err = c.fly(j.rail(p)); err != nil {
				return c.explain(k, outwards, err)
			}
		}
		if p+1 < j.pieces {
			if p+1 >= ring {
				if err := finish(p + 1 - ring); err != nil {
					return err
				}
			}
			if err := c.begin(k, j, p+1); err != nil {
				return err
			}
		}
		if p > 0 {
			if err := last(p - 1); err != nil {
				return err
			}
		}
	}
	if j.pieces > 0 {
		if err := last(j.pieces - 1); err != nil {
			return err
		}
	}
	for p := max(0, j.pieces-ring); p < j.pieces; p++ {
		if err := finish(p); err != nil {
			return err
		}
	}
	return nil
}
