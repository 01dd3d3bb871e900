package main

import (
	"os"

	"github.com/gotrain/gotrain/ddp/launch"
)

// process is what this process is in a job: a rank, one that is alone, or the supervisor of the ranks of its machine, of which pod is one of several.
type process struct {
	id  launch.Identity
	pod *launch.Pod
}

// thisProcess asks the environment.
func thisProcess() (process, error) {
	pod, ok, err := launch.PodOf(os.LookupEnv)
	if err != nil {
		return process{}, err
	}
	if ok {
		return process{id: launch.Identity{World: 1, LocalWorld: 1, Nodes: 1, Source: launch.SourceSingle}, pod: &pod}, nil
	}
	id, err := launch.Self()
	return process{id: id}, err
}

// speaks reports whether the process prints what concerns all ranks: rank 0, or the supervisor of rank 0, but not both.
func (p process) speaks() bool {
	return p.first() && p.id.Source != launch.SourceGotrain
}

// first reports whether the process is rank 0, or starts it.
func (p process) first() bool { return p.id.Rank == 0 && (p.pod == nil || p.pod.Node == 0) }

// isRank reports whether the process does the work itself.
func (p process) isRank(ranks int) bool {
	return p.pod == nil && (p.id.Source != launch.SourceSingle || ranks == 1)
}
