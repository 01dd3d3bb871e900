package simulate

import (
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/schedule"
)

// Compute is when a rank's device is done with what, from the beginning of a step.
type Compute struct {
	Forward time.Duration   `json:"forward_ns"` // the loss is known, and ranks can vote
	Ready   []time.Duration `json:"ready_ns"`   // by parameter, in ready order: its gradient is complete
	End     time.Duration   `json:"end_ns"`     // the backward pass is over
	Update  float64         `json:"update"`     // seconds that the optimizer takes for a byte of gradients
	Rest    time.Duration   `json:"rest_ns"`    // what a step needs beyond: loading, the host's work
}

// Alone is the time of a step without communication.
func (c Compute) Alone(gradients int64) time.Duration {
	return c.End + time.Duration(c.Update*float64(gradients)*1e9) + c.Rest
}

// Valid reports what is wrong, for a number of parameters.
func (c Compute) Valid(params int) error {
	if len(c.Ready) != params {
		return fmt.Errorf("simulate: times of %d gradients for %d parameters", len(c.Ready), params)
	}
	last := time.Duration(0)
	for i, r := range c.Ready {
		if r < last || r > c.End {
			return fmt.Errorf("simulate: gradient %d is ready at %v, the one before at %v, and the backward pass ends at %v", i, r, last, c.End)
		}
		last = r
	}
	if c.Forward < 0 || c.Forward > c.End || !(c.Update >= 0) || c.Rest < 0 {
		return fmt.Errorf("simulate: forward %v, end %v, update %v s a byte, rest %v", c.Forward, c.End, c.Update, c.Rest)
	}
	return nil
}

// Step is what to simulate.
type Step struct {
	Buckets *bucket.Plan
	Compute Compute
	Cluster link.Cluster
	Codec   Codec // the zero value: none
	// OneGroup has all phases of a codec in one group, for transports that cannot make a second one.
	OneGroup bool
	// Together makes updates wait for the last bucket, as a limit of the gradient norm does.
	Together bool
}

// Result is a simulated step.
type Result struct {
	Time    time.Duration   `json:"step_ns"`    // of the whole step
	Alone   time.Duration   `json:"alone_ns"`   // of the step of one rank, without communication
	Exposed time.Duration   `json:"exposed_ns"` // for which the device waits for buckets
	Wire    time.Duration   `json:"wire_ns"`    // for which collectives are in progress, hidden or not
	Landed  []time.Duration `json:"landed_ns"`  // by bucket: it holds its sum
}

// Efficiency is the speed of a rank relative to one that trains alone.
func (r Result) Efficiency() float64 {
	if r.Time == 0 {
		return 1
	}
	return float64(r.Alone) / float64(r.Time)
}

// vote is the size of the message by which ranks agree before the first bucket.
func vote(ranks int) int64 { return int64(8 * (2 + 2*ranks)) }

// Run simulates a step.
func Run(s Step) (Result, error) {
	if err := s.Compute.Valid(len(s.Buckets.Params)); err != nil {
		return Result{}, err
	}
	if err := s.Cluster.Valid(); err != nil {
		return Result{}, err
	}
	phases := workOf(s.Codec, s.Cluster).phases()
	groups := phases
	if s.OneGroup {
		groups = 1
	}
	p, err := schedule.New(len(s.Buckets.Buckets), phases, groups)
	if err != nil {
		return Result{}, err
	}
	m := newMachine(s, schedule.NewRun(p))
	m.play()
	return m.result(), nil
}

// Bound is the step on an ideal wire: no latency, no codec, no time to add. What is exposed there no implementation can hide.
func Bound(s Step) (Result, error) {
	s.Codec = Codec{}
	l := link.Link{Bandwidth: s.Cluster.Link.Bandwidth}
	if s.Cluster.Hosts == 1 {
		s.Cluster.Local = link.Link{Bandwidth: s.Cluster.Inside().Bandwidth}
	} else {
		s.Cluster = link.Cluster{Ranks: s.Cluster.Hosts, Hosts: s.Cluster.Hosts, Link: l}
	}
	return Run(s)
}
