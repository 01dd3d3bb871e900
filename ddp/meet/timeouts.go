package meet

import "time"

// The default deadlines. A zero in Timeouts takes the one of its row.
var defaults = Timeouts{
	Start:     300 * time.Second,
	Handshake: 2 * time.Second,
	Mesh:      30 * time.Second,
	Exchange:  300 * time.Second,
	End:       30 * time.Second,
}

func (t Timeouts) filled() Timeouts {
	for _, p := range []struct{ v, d *time.Duration }{
		{&t.Start, &defaults.Start}, {&t.Handshake, &defaults.Handshake}, {&t.Mesh, &defaults.Mesh}, {&t.Exchange, &defaults.Exchange}, {&t.End, &defaults.End},
	} {
		if *p.v <= 0 {
			*p.v = *p.d
		}
	}
	return t
}

const (
	defaultBeat = 500 * time.Millisecond
	deadAfter   = 8 // beats
	missed      = 2 // beats of silence that a digest mentions

	unmet    = 30 * time.Second       // silence before the roster, which tells the ranks their common beat
	tell     = 10 * time.Second       // between sentences about missing ranks, and between lines about strangers
	grace    = 3 * time.Second        // an unsigned refusal may come from another job that is about to end
	rejected = 5 * time.Second        // a host that rejects data connections for so long will go on
	cutShort = 20 * time.Millisecond  // before a deadline, an attempt may end because of it
	attempt  = 3 * time.Second        // of one connection
	decide   = 400 * time.Millisecond // a report of a broken connection waits so long for a better cause
	patient  = 500 * time.Millisecond // Report waits so long for the verdict
)
