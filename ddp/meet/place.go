package meet

import "context"

// Place is where the ranks of a job meet: an address and a token, or a way to exchange them. Package find makes one from the environment.
type Place struct {
	// Addr is host:port of rank 0, or several of them separated by commas, of which one works; "": rank 0 listens on any port and publishes its address.
	Addr string
	// Token is the secret that all ranks know. Rank 0 always has one unless Open is true; another rank whose Token is nil gets it from Lookup.
	Token []byte
	// Open means that there is no secret: only the name of the job keeps the ranks of other jobs out. Warning says so.
	Open bool
	// Job names the job where the launcher's own name is not the same on all hosts; "": Identity.JobID is the same.
	Job string
	// How says where this comes from, for messages: "MASTER_ADDR=n1 MASTER_PORT=29500", "PMI-1 of mpirun", "file /shared/x".
	How string

	// Publish and Lookup are nil if Addr is known. Rank 0 calls Publish once, with the address on which it listens. The other ranks call Lookup, which
	// waits for that, and call it again if nobody answers at the address: a file may be left over from an earlier run. Each returns when ctx is done.
	// Both may wait until every rank has called one of them.
	Publish func(ctx context.Context, addr string, token []byte) error
	Lookup  func(ctx context.Context) (addr string, token []byte, err error)
	// Clear removes what Publish has left behind. Rank 0 calls it once all ranks have come, and when they do not. It may be nil.
	Clear func()
}

// Warning is what a run says once if the place is open, otherwise "".
func (p Place) Warning() string {
	if !p.Open {
		return ""
	}
	return "the ranks meet at " + p.How + " without a token: only mistakes, not strangers, are kept out\n" +
		"hint: set GOTRAIN_JOB_TOKEN, or GOTRAIN_TOKEN_FILE to a file with mode 0600, to the same secret on all hosts"
}
