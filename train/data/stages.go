package data

import "time"

// Stage is a part of the work of loading samples.
type Stage struct {
	Name string        // "decode"
	Took time.Duration // since the source was opened, summed over samples and goroutines
}

// Staged is a source that knows what its work consists of.
type Staged interface {
	Source
	// Stages are in the order in which a sample passes them. It may be called while samples are loaded.
	Stages() []Stage
}
