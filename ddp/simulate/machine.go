package simulate

import (
	"math"
	"slices"
	"time"

	"github.com/gotrain/gotrain/ddp/schedule"
)

// never is after everything.
const never = time.Duration(math.MaxInt64)

// lane is a group of ranks in virtual time: its issuer works on one item at a time, its collectives run one after the other, and its completer finishes one
// bucket at a time.
type lane struct {
	item    schedule.Item // in the issuer
	issues  time.Duration // when the issuer is done with it; never: it is idle
	wire    []call        // issued; the first is in progress
	finish  []int         // buckets whose last collective is complete; the first is being decoded
	decoded time.Duration // when it is; never: none
}

// call is a collective on the wire.
type call struct {
	item schedule.Item
	left time.Duration // of its time, if it had the wire alone
}

// machine executes the schedule.
type machine struct {
	step   Step
	work   work
	run    *schedule.Run
	now    time.Duration
	gate   time.Duration   // when the ranks have voted
	ready  []time.Duration // by bucket
	order  []int           // buckets in the order in which they are ready
	seen   int             // of order
	open   bool
	lanes  []lane
	landed []time.Duration
	left   int // buckets that have not landed
	busy   time.Duration
}

func newMachine(s Step, run *schedule.Run) *machine {
	n := len(s.Buckets.Buckets)
	m := &machine{step: s, work: workOf(s.Codec, s.Cluster), run: run,
		ready: make([]time.Duration, n), landed: make([]time.Duration, n), left: n, lanes: make([]lane, run.Plan().Lanes())}
	for k, b := range s.Buckets.Buckets {
		m.ready[k] = s.Compute.Ready[b.Ready]
		m.order = append(m.order, k)
	}
	slices.SortStableFunc(m.order, func(a, b int) int { return int(min(max(m.ready[a]-m.ready[b], -1), 1)) })
	m.gate = s.Compute.Forward + s.Cluster.AllReduce(vote(s.Cluster.Ranks))
	for l := range m.lanes {
		m.lanes[l].issues, m.lanes[l].decoded = never, never
	}
	run.Begin(true)
	if s.Cluster.Ranks == 1 { // nothing travels
		copy(m.landed, m.ready)
		m.left = 0
	}
	return m
}

// play runs until all buckets have landed.
func (m *machine) play() {
	for m.left > 0 {
		m.issue()
		m.advance(m.next())
	}
}

// issue gives idle issuers what the schedule lets them issue.
func (m *machine) issue() {
	for l := range m.lanes {
		if m.lanes[l].issues != never {
			continue
		}
		if it, ok := m.run.Next(l); ok {
			m.lanes[l].item = it
			m.lanes[l].issues = m.now + m.work.before(it.Phase, m.bytes(it.Bucket))
		}
	}
}

func (m *machine) bytes(bucket int) int64 { return m.step.Buckets.Buckets[bucket].Bytes }

// sharing is how many collectives share the wire, inside hosts or between them.
func (m *machine) sharing() (n [2]int) {
	for l := range m.lanes {
		if q := &m.lanes[l]; len(q.wire) > 0 {
			n[m.link(q)]++
		}
	}
	return n
}

// link is which wire the collective of a lane in progress uses.
func (m *machine) link(q *lane) int {
	if m.work.inside(q.wire[0].item.Phase) {
		return 1
	}
	return 0
}

// next is when something happens.
func (m *machine) next() time.Duration {
	at := never
	if !m.open {
		at = m.gate
	}
	if m.seen < len(m.order) {
		at = min(at, m.ready[m.order[m.seen]])
	}
	n := m.sharing()
	for l := range m.lanes {
		q := &m.lanes[l]
		at = min(at, q.issues, q.decoded)
		if len(q.wire) > 0 {
			at = min(at, m.now+q.wire[0].left*time.Duration(n[m.link(q)]))
		}
	}
	if at == never {
		panic("simulate: nothing happens any more")
	}
	return max(at, m.now)
}

// advance lets time pass, and does what happens then.
func (m *machine) advance(to time.Duration) {
	if n := m.sharing(); n[0]+n[1] > 0 {
		m.busy += to - m.now
		for l := range m.lanes {
			if q := &m.lanes[l]; len(q.wire) > 0 {
				q.wire[0].left -= (to - m.now) / time.Duration(n[m.link(q)])
			}
		}
	}
	m.now = to
	if !m.open && m.gate <= to {
		m.open = true
		m.run.Open()
	}
	for ; m.seen < len(m.order) && m.ready[m.order[m.seen]] <= to; m.seen++ {
		m.run.Ready(m.order[m.seen])
	}
	for l := range m.lanes {
		m.turn(&m.lanes[l])
	}
}

// turn moves what is due in a lane from one stage to the next.
func (m *machine) turn(q *lane) {
	if len(q.wire) > 0 && q.wire[0].left <= 0 {
		it := q.wire[0].item
		q.wire = q.wire[1:]
		m.run.Done(it)
		if m.run.Plan().Last(it) {
			q.finish = append(q.finish, it.Bucket)
			m.decode(q)
		}
	}
	if q.issues <= m.now {
		q.wire = append(q.wire, call{q.item, m.work.wire(q.item.Phase, m.bytes(q.item.Bucket))})
		q.issues = never
	}
	if q.decoded <= m.now {
		m.landed[q.finish[0]] = m.now
		q.finish, q.decoded = q.finish[1:], never
		m.left--
		m.decode(q)
	}
}

// decode begins to finish the next bucket, if the completer is idle.
func (m *machine) decode(q *lane) {
	if q.decoded == never && len(q.finish) > 0 {
		q.decoded = m.now + m.work.after(m.bytes(q.finish[0]))
	}
}

// result adds the optimizer's work: on the device, behind the backward pass, in the order of buckets.
func (m *machine) result() Result {
	c := m.step.Compute
	r := Result{Landed: m.landed, Wire: m.busy}
	gradients := int64(0)
	free := c.End
	if m.step.Together && len(m.landed) > 0 {
		last := slices.Max(m.landed)
		r.Exposed = max(0, last-free)
		free = max(free, last)
	}
	for k, landed := range m.landed {
		r.Exposed += max(0, landed-free)
		gradients += m.bytes(k)
		free = max(free, landed) + time.Duration(c.Update*float64(m.bytes(k))*1e9)
	}
	r.Time = free + c.Rest
	r.Alone = c.Alone(gradients)
	return r
}
