package schedule

// Run is the state of one step on one rank. It is not safe for concurrent use. Its methods do not allocate.
type Run struct {
	plan  *Plan
	ready []bool // by bucket: its gradients are complete, or will be behind an event
	done  []int  // by bucket: collectives that are complete
	next  []int  // by lane: the item to issue next
	open  bool
}

// NewRun returns the state of steps that follow a plan. Begin a step before use.
func NewRun(p *Plan) *Run {
	return &Run{plan: p, ready: make([]bool, p.buckets), done: make([]int, p.buckets), next: make([]int, len(p.lanes))}
}

// Plan is the order that the run follows.
func (r *Run) Plan() *Plan { return r.plan }

// Begin starts a step. If gated, nothing is issued before Open.
func (r *Run) Begin(gated bool) {
	clear(r.ready)
	clear(r.done)
	clear(r.next)
	r.open = !gated
}

// Open lets a gated step issue: its ranks have voted.
func (r *Run) Open() { r.open = true }

// Ready says that the gradients of a bucket may be sent. Buckets may be ready in any order.
func (r *Run) Ready(bucket int) { r.ready[bucket] = true }

// Done says that a collective is complete on this rank.
func (r *Run) Done(it Item) { r.done[it.Bucket] = it.Phase + 1 }

// Next returns the next item of a lane, and counts it as issued; false if it must wait.
func (r *Run) Next(lane int) (Item, bool) {
	items := r.plan.lanes[lane]
	if r.next[lane] == len(items) || !r.open {
		return Item{}, false
	}
	it := items[r.next[lane]]
	if it.Phase == 0 && !r.ready[it.Bucket] || it.Phase > r.done[it.Bucket] {
		return Item{}, false
	}
	r.next[lane]++
	return it, true
}

// Issued reports how many items of a lane were issued.
func (r *Run) Issued(lane int) int { return r.next[lane] }
