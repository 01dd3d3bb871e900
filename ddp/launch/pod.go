package launch

import (
	"fmt"
	"strconv"
	"strings"
)

// Pod is the part of a job on one machine, where the launcher starts one process on each machine and leaves it to that process to start the ranks.
// These do so:
//
//	Ascend operator   RANK=pod, WORLD_SIZE=ranks, LOCAL_WORLD_SIZE=ranks of a pod, LOCAL_RANK="0,1,…"
//	PyTorchJob        PET_NNODES, PET_NODE_RANK, PET_NPROC_PER_NODE, PET_MASTER_ADDR, PET_MASTER_PORT: the options of torchrun
//	Volcano           RANK=pod, WORLD_SIZE=pods (plugin pytorch); or, with GOTRAIN_LAUNCHER=volcano, VC_TASK_INDEX and VC_WORKER_HOSTS
type Pod struct {
	Ranks       int // on this machine, and on each other one; 0: the launcher does not say
	Node, Nodes int // index of this machine, number of machines

	MasterAddr string // of rank 0; "" and 0 if not known
	MasterPort int
	Restart    int
	JobID      string // the same on all machines; "": derived from the address of rank 0
	By         string // for messages: "the Ascend operator"
}

// podsVolcano is the value of GOTRAIN_LAUNCHER for Volcano without its plugin pytorch.
const podsVolcano = "volcano"

const podHint = "start the program with hcclrun, which starts those ranks: hcclrun PROGRAM"

// String formats the pod for messages: "node 1 of 2 (Volcano), ranks 8–15 of 16".
func (p Pod) String() string {
	text := fmt.Sprintf("node %d of %d (%s)", p.Node, p.Nodes, p.By)
	if p.Ranks > 0 {
		text += fmt.Sprintf(", ranks %d–%d of %d", p.Node*p.Ranks, (p.Node+1)*p.Ranks-1, p.Nodes*p.Ranks)
	}
	return text
}

func (p Pod) why() string {
	if p.Ranks > 0 {
		return fmt.Sprintf("this process is to start the %d ranks of %s", p.Ranks, p)
	}
	return "this process is to start the ranks of " + p.String()
}

// Place makes a job that of one machine among several. The number of ranks here is that of the pod, or else that of the job.
func (p Pod) Place(j *Job) {
	if p.Ranks > 0 {
		j.Ranks = p.Ranks
	}
	j.NodeRank, j.Nodes = p.Node, p.Nodes
	j.First, j.World = p.Node*j.Ranks, p.Nodes*j.Ranks
	switch {
	case p.Nodes < 2 || j.JobID != "":
	case p.JobID != "":
		j.JobID = p.JobID
	default:
		j.JobID = safeName(fmt.Sprintf("nodes-%s-%d-%d", p.MasterAddr, p.MasterPort, p.Restart))
	}
}

// Environ returns the variables that ranks need besides those of the supervisor.
func (p Pod) Environ() []string {
	if p.MasterAddr == "" || p.MasterPort == 0 {
		return nil
	}
	return []string{"GOTRAIN_MASTER_ADDR=" + p.MasterAddr, "GOTRAIN_MASTER_PORT=" + strconv.Itoa(p.MasterPort)}
}

// PodOf reports whether a launcher wants this process to start the ranks of its machine. Errors are *EnvError.
func PodOf(lookup Lookup) (Pod, bool, error) {
	r := &reader{lookup: lookup, source: SourceTorchrun}
	switch only := r.str(launcherVar); {
	case only == podsVolcano:
		s := volcano(r)
		s.name(r)
		return s, r.err == nil, r.err
	case only != "" && only != SourceTorchrun, only == "" && sources[0].present(r): // a rank of ours
		return Pod{}, false, nil
	}
	s, ok := podOf(r)
	return s, ok && r.err == nil, r.err
}

// podOf reads the variables of operators.
func podOf(r *reader) (s Pod, ok bool) {
	switch {
	case strings.Contains(r.str("LOCAL_RANK"), ","):
		s = ascendPod(r)
	case r.has("LOCAL_RANK"): // torchrun's child, whatever its pod has
		return s, false
	case r.has("PET_NNODES") || r.has("PET_NPROC_PER_NODE") || r.has("PET_NODE_RANK"):
		s = torchPod(r)
	case !r.has("LOCAL_WORLD_SIZE") && !r.has("NPROC_PER_NODE") && r.has("RANK") && r.has("WORLD_SIZE") && (r.has("VC_TASK_INDEX") || r.has("VK_TASK_INDEX")):
		s = Pod{Node: r.need("RANK"), Nodes: r.needSize("WORLD_SIZE"), By: "plugin pytorch of Volcano"}
	default:
		return s, false
	}
	if r.err == nil && s.Node >= s.Nodes {
		r.fail("node rank", fmt.Sprintf("%d is not below the number of nodes %d", s.Node, s.Nodes), "")
	}
	if r.err == nil && (s.Ranks > maxWorld || s.Nodes > maxWorld || s.Ranks*s.Nodes > maxWorld) {
		r.fail("WORLD_SIZE", fmt.Sprintf("more than %d ranks", maxWorld), "")
	}
	s.master(r)
	s.name(r)
	return s, true
}

// name sets the job's name, and demands a place where the machines meet.
func (p *Pod) name(r *reader) {
	where := r.str("GOTRAIN_RENDEZVOUS")
	switch {
	case p.Nodes < 2:
	case r.has("GOTRAIN_JOB_ID"):
		p.JobID = safeName(r.str("GOTRAIN_JOB_ID"))
	case p.MasterAddr != "":
	case where != "":
		p.JobID = safeName("nodes-" + where)
	default:
		r.hint = "set it to the address of rank 0, the same on all machines"
		r.need("MASTER_ADDR")
		r.hint = ""
	}
}

// master sets the address of rank 0.
func (p *Pod) master(r *reader) {
	var id Identity
	if r.has("PET_MASTER_ADDR") && !r.has("GOTRAIN_MASTER_ADDR") && !r.has("MASTER_ADDR") && r.err == nil {
		pet := *r
		pet.lookup = func(name string) (string, bool) { return r.lookup("PET_" + name) }
		pet.master(&id)
		if r.err = pet.err; r.err != nil {
			r.err = &EnvError{Source: r.source, Var: "PET_MASTER_ADDR, PET_MASTER_PORT", Msg: pet.err.(*EnvError).Msg, Hint: pet.err.(*EnvError).Hint}
		}
	} else {
		r.master(&id)
	}
	p.MasterAddr, p.MasterPort = id.MasterAddr, id.MasterPort
}

// ascendPod reads the variables of the Ascend operator.
func ascendPod(r *reader) Pod {
	list := r.str("LOCAL_RANK")
	s := Pod{By: "the Ascend operator", Ranks: r.opt("LOCAL_WORLD_SIZE", 0)}
	for i, v := range strings.Split(list, ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(v)); err != nil || n != i {
			r.fail("LOCAL_RANK", fmt.Sprintf("%q does not count from 0", list), "a list means one process per pod, as the Ascend operator starts it: 0,1,2,…")
			return s
		}
	}
	n := strings.Count(list, ",") + 1
	if s.Ranks == 0 {
		s.Ranks = n
	}
	world := r.needSize("WORLD_SIZE")
	s.Node = r.need("RANK")
	switch {
	case r.err != nil:
	case n != s.Ranks:
		r.fail("LOCAL_RANK", fmt.Sprintf("%q are %d ranks, but LOCAL_WORLD_SIZE=%d", list, n, s.Ranks), "")
	case world%s.Ranks != 0:
		r.fail("WORLD_SIZE", fmt.Sprintf("%d is not a multiple of the %d ranks of a pod", world, s.Ranks), "all pods must have as many devices")
	default:
		s.Nodes = world / s.Ranks
	}
	return s
}

// torchPod reads the options of torchrun from the variables that stand for them.
func torchPod(r *reader) Pod {
	s := Pod{By: "PyTorchJob (PET_*)", Nodes: 1, Restart: r.opt("TORCHELASTIC_RESTART_COUNT", 0)}
	if v := r.str("PET_NNODES"); strings.Contains(v, ":") {
		lo, hi, _ := strings.Cut(v, ":")
		if lo != hi {
			r.fail("PET_NNODES", v+" is a range, and the number of machines must be fixed", "remove elasticPolicy, or set minReplicas equal to maxReplicas")
			return s
		}
		s.Nodes, _ = strconv.Atoi(lo)
	} else if v != "" {
		s.Nodes = r.needSize("PET_NNODES")
	}
	if s.Nodes < 1 {
		r.fail("PET_NNODES", r.str("PET_NNODES")+" is not a number of machines", "")
	}
	switch v := r.str("PET_NPROC_PER_NODE"); v {
	case "", "auto", "cpu", "gpu", "npu": // as many as there are devices, or as the program wants
	default:
		s.Ranks = r.needSize("PET_NPROC_PER_NODE")
	}
	switch {
	case r.has("PET_NODE_RANK"):
		s.Node = r.need("PET_NODE_RANK")
	case s.Nodes > 1:
		r.hint = "the operator sets it; by hand it is 0 on the first machine"
		s.Node = r.need("RANK")
		r.hint = ""
	}
	if world := r.opt("WORLD_SIZE", 0); world != 0 && s.Ranks > 0 && world != s.Nodes && world != s.Nodes*s.Ranks && r.err == nil {
		r.fail("WORLD_SIZE", fmt.Sprintf("%d fits neither %d machines nor %d ranks on each", world, s.Nodes, s.Ranks), "")
	}
	return s
}

// volcano reads what Volcano says of a task without the plugin pytorch. It is not found out by itself: the pods of a job with a launcher pod have the same
// variables.
func volcano(r *reader) Pod {
	s := Pod{By: "Volcano", Node: r.need("VC_TASK_INDEX")}
	task := "WORKER"
	for _, t := range []string{"WORKER", "MASTER", "TASK"} {
		if r.has("VC_" + t + "_HOSTS") {
			task = t
			break
		}
	}
	name := "VC_" + task + "_HOSTS"
	if !r.has(name) {
		r.need(name)
		return s
	}
	all := strings.Split(r.str(name), ",")
	s.Nodes = len(all)
	s.master(r)
	if s.MasterAddr == "" {
		s.MasterAddr, s.MasterPort = strings.TrimSpace(all[0]), 23456
	}
	if r.err == nil && s.Node >= s.Nodes {
		r.fail("VC_TASK_INDEX", fmt.Sprintf("%d is not below the number of hosts in %s=%s", s.Node, name, r.str(name)), "")
	}
	return s
}
