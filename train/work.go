package train

import (
	"context"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Note [who waits for whom]
//
// Some work of one rank makes the others wait: rank 0 chooses, checks and writes checkpoints. Other work takes some ranks longer than others: opening
// data, filling caches, compiling, reading weights. Neither may run into the deadline of the collective in which the others wait, because that
// deadline is for dead or frozen ranks. So such work is declared (comm.Steady), and has the deadline Config.LongWork. Reading and writing checkpoints
// beats while the file system makes progress; a start beats for as long as the process runs. Within an epoch or an evaluation, ranks meet after every
// batch, and nothing is declared: a rank whose batch takes longer than Config.Timeout is late.

// patient returns a context for a collective outside the engine.
func (t *Trainer) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return comm.Patient(ctx, t.cfg.Timeout, t.cfg.LongWork)
}

// onDisk declares work on checkpoints until the returned function is called.
func (t *Trainer) onDisk(what string) (end func()) {
	t.pulse.Beats() // earlier progress does not count
	return comm.Steady(t.comm, what, t.pulse.Beats)
}
