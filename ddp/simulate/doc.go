// Package simulate predicts a data-parallel step: when buckets are ready, how long they travel, what of that the backward pass hides. It executes the
// schedule that the engine executes (ddp/schedule) in virtual time.
//
// A Step needs four things: the buckets, when the device completes each gradient (Compute), what a collective costs (link.Cluster), and what a codec costs
// (Codec). Run gives the time of the step and its exposed communication: the time for which the device waits for buckets after the backward pass.
//
//	r, err := simulate.Run(simulate.Step{Buckets: plan, Compute: c, Cluster: link.Cluster{Ranks: 64, Hosts: 8, Link: l}})
//	fmt.Println(r.Time, r.Exposed)
//
// Best cuts the buckets so that the exposed time is least.
//
// # What is left out
//
// All ranks take the same time: a rank that is late makes the others wait, and no model knows which. Collectives take no time from the device. Codecs run
// on a core of their own. On a machine whose ranks compute on the processors, both take their part of them, so a prediction is a lower bound there.
package simulate
