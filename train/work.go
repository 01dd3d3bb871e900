package train

import (
	"context"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Note [who waits for whom]
//
// One rank does what the others wait for: rank 0 chooses, checks and writes checkpoints. And all ranks do what takes some longer than others: they open
// data, fill caches, compile, read weights. Neither may run into the deadline of the collective in which the others wait, which is there for a rank that is
// dead or frozen. So such work is declared (comm.Steady), and has the deadline Config.LongWork. Writing and reading checkpoints beats while the file
// system makes progress; a start beats for as long as the process runs. Within an epoch and an evaluation ranks meet after every batch, and
// nothing is declared: a rank whose batch takes longer than Config.Timeout is late.

// patient is the context of a collective outside of the engine.
func (t *Trainer) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return comm.Patient(ctx, t.cfg.Timeout, t.cfg.LongWork)
}

// onDisk declares work on checkpoints, until the function that it gives is called.
func (t *Trainer) onDisk(what string) (end func()) {
	t.pulse.Beats() // what was before does not count
	return comm.Steady(t.comm, what, t.pulse.Beats)
}
