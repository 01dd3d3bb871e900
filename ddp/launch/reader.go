package launch

import (
	"fmt"
	"strconv"
	"strings"
)

// reader reads the variables of one launcher and keeps the first error.
type reader struct {
	lookup Lookup
	source string
	hint   string // for missing variables
	err    error
}

// str returns the value of a variable without surrounding whitespace, "" if not set.
func (r *reader) str(name string) string {
	v, _ := r.lookup(name)
	return strings.TrimSpace(v)
}

// has reports whether a variable is set and not empty.
func (r *reader) has(name string) bool { return r.str(name) != "" }

func (r *reader) fail(name, msg, hint string) {
	if r.err == nil {
		r.err = &EnvError{Source: r.source, Var: name, Msg: msg, Hint: hint}
	}
}

// opt reads an optional number, at least 0.
func (r *reader) opt(name string, def int) int {
	v := r.str(name)
	if v == "" {
		return def
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > maxRanks {
		r.fail(name, fmt.Sprintf("%q is not a non-negative number", v), "")
		return def
	}
	return n
}

// need reads a required number.
func (r *reader) need(name string) int {
	if !r.has(name) {
		hint := r.hint
		if hint == "" {
			hint = "set it; to run without this launcher, unset the others or set GOTRAIN_LAUNCHER=none"
		}
		r.fail(name, "not set, but other variables of this launcher are", hint)
		return 0
	}
	return r.opt(name, 0)
}

// needSize reads a required count of at least 1.
func (r *reader) needSize(name string) int {
	n := r.need(name)
	if n < 1 && r.err == nil {
		r.fail(name, fmt.Sprintf("%d is not a number of processes", n), "")
	}
	return n
}

// master sets the address of rank 0 from gotrain's variables or else the common ones, never a mix of both.
func (r *reader) master(id *Identity) {
	prefix := "MASTER_"
	if r.has("GOTRAIN_MASTER_ADDR") || r.has("GOTRAIN_MASTER_PORT") {
		prefix = "GOTRAIN_MASTER_"
	}
	if v := r.str(prefix + "ADDR"); v != "" {
		host, port, err := Endpoint(v)
		if err != nil {
			msg, hint, _ := strings.Cut(err.Error(), "\nhint: ")
			r.fail(prefix+"ADDR", msg, hint)
		}
		id.MasterAddr, id.MasterPort = host, port
	}
	if r.has(prefix + "PORT") {
		id.MasterPort = r.opt(prefix+"PORT", 0)
		if id.MasterPort < 1 || id.MasterPort > 65535 {
			r.fail(prefix+"PORT", fmt.Sprintf("%q is not a port", r.str(prefix+"PORT")), "use a number from 1 to 65535")
		}
	}
}

// names holds the variables of rank, world, local rank and local world, for messages.
var names = map[string][4]string{
	SourceGotrain:  {"GOTRAIN_RANK", "GOTRAIN_WORLD_SIZE", "GOTRAIN_LOCAL_RANK", "GOTRAIN_LOCAL_WORLD_SIZE"},
	SourceTorchrun: {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
	SourceOpenMPI:  {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
	SourcePMI:      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
	SourceSlurm:    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_TASKS_PER_NODE"},
}

// complete checks that the numbers are consistent and derives the nodes where that is certain.
func (r *reader) complete(id *Identity) {
	n := names[r.source]
	below := func(a string, x int, b string, y int) {
		if x >= y {
			r.fail(a, fmt.Sprintf("%d is not below %s=%d", x, b, y), "")
		}
	}
	below(n[0], id.Rank, n[1], id.World)
	below(n[2], id.LocalRank, n[3], id.LocalWorld)
	if id.LocalWorld > id.World {
		r.fail(n[3], fmt.Sprintf("%d is more than %s=%d", id.LocalWorld, n[1], id.World), "")
	}
	// Open MPI 5 may count the ranks of a machine in another order than those of the job.
	anyOrder := r.source == SourceOpenMPI || r.source == SourceGotrain
	if id.LocalRank > id.Rank && !anyOrder {
		r.fail(n[2], fmt.Sprintf("%d is more than %s=%d", id.LocalRank, n[0], id.Rank), "")
	}
	if id.LocalWorld == id.World && id.LocalRank != id.Rank && !anyOrder {
		r.fail(n[2], fmt.Sprintf("%d differs from %s=%d although all %d ranks are on one machine", id.LocalRank, n[0], id.Rank, id.World), "")
	}
	if r.err != nil {
		return
	}
	if id.Nodes == 0 {
		r.fail("number of nodes", "0 is not a number of machines", "")
		return
	}
	// Of several machines the launcher must say how many: machines may have different numbers of ranks, so a quotient would differ between ranks.
	if id.Nodes < 0 && id.LocalWorld == id.World {
		id.Nodes = 1
	}
	if id.Nodes == 1 && id.NodeRank < 0 {
		id.NodeRank = 0
	}
	// Ranks that are assigned node by node tell the node, if the launcher says that all have as many.
	if id.NodeRank < 0 && id.Nodes > 0 && id.World == id.Nodes*id.LocalWorld && id.Rank%id.LocalWorld == id.LocalRank {
		id.NodeRank = id.Rank / id.LocalWorld
	}
	if id.Nodes < 0 {
		return
	}
	if id.NodeRank >= id.Nodes {
		r.fail("node rank", fmt.Sprintf("%d is not below the number of nodes %d", id.NodeRank, id.Nodes), "")
	}
	if id.Nodes > 1 && id.LocalWorld == id.World || id.Nodes == 1 && id.LocalWorld < id.World {
		r.fail("number of nodes", fmt.Sprintf("%d does not fit %s=%d and %s=%d", id.Nodes, n[3], id.LocalWorld, n[1], id.World), "")
	}
}
