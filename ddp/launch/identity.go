package launch

import (
	"fmt"
	"os"
	"strings"
)

// The sources of an identity, in order of precedence.
const (
	SourceGotrain  = "gotrain"
	SourceTorchrun = "torchrun"
	SourceOpenMPI  = "openmpi"
	SourcePMI      = "pmi"
	SourceSlurm    = "slurm"
	SourceSingle   = "single"
)

// Identity describes a process within its job. A number that the launcher does not provide and that cannot be
// derived is -1.
type Identity struct {
	Rank, World           int
	LocalRank, LocalWorld int // within this machine; the local rank picks the device
	// NodeRank and Nodes are the index of this machine and the number of machines. Nodes is 1 only if all ranks are on this machine, and -1 if there are
	// several and the launcher does not say how many: the ranks find out when they meet. NodeRank is then -1, or a number that only tells machines apart.
	NodeRank, Nodes int

	// MasterAddr and MasterPort are the address of rank 0; "" and 0 if unknown. They are not needed on one machine.
	MasterAddr string
	MasterPort int

	// JobID is the same for all ranks of this machine and differs between jobs that run at the same time and between
	// restarts. It is safe to use in a file name.
	JobID   string
	Source  string // the launcher whose variables were used, one of the Source constants
	Restart int    // how often the launcher restarted the job
}

// String formats the line that a run prints once: "rank 1 of 2 (local 1 of 2, node 0 of 1) from openmpi, job 1234".
func (id Identity) String() string {
	node := "several nodes"
	if id.Nodes > 0 {
		node = fmt.Sprintf("node %d of %d", id.NodeRank, id.Nodes)
	}
	return fmt.Sprintf("rank %d of %d (local %d of %d, %s) from %s, job %s", id.Rank, id.World, id.LocalRank, id.LocalWorld, node, id.Source, id.JobID)
}

// Said lists the variables that the identity was read from, with their values: "RANK=0, WORLD_SIZE=2, LOCAL_RANK=0".
func (id Identity) Said(lookup Lookup) string {
	r := &reader{lookup: lookup}
	var out []string
	for _, n := range names[id.Source] {
		if r.has(n) {
			out = append(out, n+"="+r.str(n))
		}
	}
	return strings.Join(out, ", ")
}

// launcherVar selects a launcher by the name of its source, or none with "none", whatever variables are set.
const launcherVar = "GOTRAIN_LAUNCHER"

// Environ returns the GOTRAIN_* variables that give another process this identity: WhoAmI over them returns the same numbers.
func (id Identity) Environ() []string {
	env := []string{
		fmt.Sprintf("GOTRAIN_RANK=%d", id.Rank),
		fmt.Sprintf("GOTRAIN_WORLD_SIZE=%d", id.World),
		fmt.Sprintf("GOTRAIN_LOCAL_RANK=%d", id.LocalRank),
		fmt.Sprintf("GOTRAIN_LOCAL_WORLD_SIZE=%d", id.LocalWorld),
		fmt.Sprintf("GOTRAIN_RESTART=%d", id.Restart),
		"GOTRAIN_JOB_ID=" + id.JobID,
	}
	if id.NodeRank >= 0 {
		env = append(env, fmt.Sprintf("GOTRAIN_NODE_RANK=%d", id.NodeRank))
	}
	if id.Nodes > 0 {
		env = append(env, fmt.Sprintf("GOTRAIN_NODES=%d", id.Nodes))
	}
	if id.MasterAddr != "" {
		env = append(env, "GOTRAIN_MASTER_ADDR="+id.MasterAddr)
	}
	if id.MasterPort != 0 {
		env = append(env, fmt.Sprintf("GOTRAIN_MASTER_PORT=%d", id.MasterPort))
	}
	return env
}

// Lookup looks up an environment variable; os.LookupEnv is one.
type Lookup func(name string) (value string, ok bool)

// LookupIn returns a Lookup over a list of NAME=value; of equal names the last one wins.
func LookupIn(env []string) Lookup {
	m := make(map[string]string, len(env))
	for _, kv := range env {
		for i := 0; i < len(kv); i++ {
			if kv[i] == '=' {
				m[kv[:i]] = kv[i+1:]
				break
			}
		}
	}
	return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
}

// EnvError describes a problem with the environment set by a launcher. Its exit code is 64.
type EnvError struct {
	Source string // the launcher whose variables were found
	Var    string // the variable that is missing or wrong
	Msg    string
	Hint   string
}

func (e *EnvError) Error() string {
	s := fmt.Sprintf("launch: environment of %s: %s: %s", launcherName(e.Source), e.Var, e.Msg)
	if e.Hint != "" {
		s += "\nhint: " + e.Hint
	}
	return s
}

// ExitCode returns 64.
func (e *EnvError) ExitCode() int { return ExitUsage }

func launcherName(source string) string {
	switch source {
	case SourceGotrain:
		return "gotrain (GOTRAIN_*)"
	case SourceTorchrun:
		return "torchrun (RANK, WORLD_SIZE, LOCAL_RANK)"
	case SourceOpenMPI:
		return "Open MPI (OMPI_COMM_WORLD_*)"
	case SourcePMI:
		return "MPICH/Hydra (PMI_*)"
	case SourceSlurm:
		return "Slurm (SLURM_*)"
	}
	return source
}

// WhoAmI determines the identity of this process. Pass os.LookupEnv for the process's own environment. Errors are *EnvError.
func WhoAmI(lookup Lookup) (Identity, error) {
	return whoAmI(lookup, parentID)
}

// Self is WhoAmI over the environment of this process.
func Self() (Identity, error) { return WhoAmI(os.LookupEnv) }

// whoAmI takes the parent's identity as a function, because it is the only input that does not come from the environment.
func whoAmI(lookup Lookup, parent func() string) (Identity, error) {
	only := (&reader{lookup: lookup}).str(launcherVar)
	if only == podsVolcano {
		p, _, err := PodOf(lookup)
		if err == nil {
			err = &EnvError{Source: SourceGotrain, Var: launcherVar, Msg: p.why() + ", and is not one of them", Hint: podHint}
		}
		return Identity{}, err
	}
	if only != "" && only != "none" && launcherName(only) == only {
		return Identity{}, &EnvError{Source: SourceGotrain, Var: launcherVar, Msg: fmt.Sprintf("%q is not a launcher", only),
			Hint: "use none, gotrain, torchrun, openmpi, pmi, slurm or volcano"}
	}
	for _, s := range sources {
		r := &reader{lookup: lookup, source: s.name}
		if only != "" && only != s.name || only == "" && !s.present(r) {
			continue
		}
		id := Identity{Source: s.name, NodeRank: -1, Nodes: -1}
		s.read(r, &id)
		if r.err == nil {
			r.master(&id)
			r.complete(&id)
			id.JobID = jobID(r, id, parent)
		}
		if r.err != nil {
			return Identity{}, r.err
		}
		return id, nil
	}
	r := &reader{lookup: lookup, source: SourceSingle}
	id := Identity{World: 1, LocalWorld: 1, Nodes: 1, Source: SourceSingle}
	id.JobID = jobID(r, id, parent)
	return id, r.err
}
