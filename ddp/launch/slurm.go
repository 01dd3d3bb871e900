package launch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// presentSlurm is true only inside an srun step: the shell of sbatch also has SLURM_PROCID=0 and SLURM_NTASKS=n, but is not a rank.
func presentSlurm(r *reader) bool {
	return r.has("SLURM_PROCID") && (r.has("SLURM_STEP_ID") || r.has("SLURM_STEPID")) && r.str("SLURM_STEP_NUM_TASKS") != "1"
}

// readSlurm prefers the variables of the step: a step may have fewer tasks and nodes than its job.
func readSlurm(r *reader, id *Identity) {
	id.Rank = r.need("SLURM_PROCID")
	world := "SLURM_STEP_NUM_TASKS"
	if !r.has(world) {
		world = "SLURM_NTASKS"
	}
	id.World = r.needSize(world)
	id.LocalRank, id.NodeRank = r.need("SLURM_LOCALID"), r.need("SLURM_NODEID")
	tasks := "SLURM_STEP_TASKS_PER_NODE"
	if !r.has(tasks) {
		tasks = "SLURM_TASKS_PER_NODE"
	}
	if !r.has(tasks) {
		r.need(tasks)
		return
	}
	counts, ok := tasksPerNode(r.str(tasks))
	if !ok {
		r.fail(tasks, "cannot read \""+r.str(tasks)+"\"", "it should look like 4(x2),2")
		return
	}
	id.Nodes = len(counts)
	if r.err == nil {
		if id.NodeRank >= len(counts) {
			r.fail("SLURM_NODEID", strconv.Itoa(id.NodeRank)+" is not below the number of nodes in "+tasks+"="+r.str(tasks), "")
			return
		}
		if sum := total(counts); sum != id.World {
			r.fail(tasks, fmt.Sprintf("%s are %d tasks, but %s=%d", r.str(tasks), sum, world, id.World), "unset it, or set GOTRAIN_LAUNCHER=none to run alone")
			return
		}
		id.LocalWorld = counts[id.NodeRank]
	}
	id.Restart = r.opt("SLURM_RESTART_COUNT", 0)
	nodes := r.str("SLURM_STEP_NODELIST")
	if nodes == "" {
		nodes = r.str("SLURM_JOB_NODELIST")
	}
	if nodes == "" {
		return
	}
	hosts, err := SlurmHosts(nodes)
	if err != nil {
		r.fail("SLURM_STEP_NODELIST", err.Error(), "")
		return
	}
	id.MasterAddr = hosts[0]
}

func total(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// SlurmTasks expands a list of tasks or processors of each node: "4(x2),2" means 4, 4, 2.
func SlurmTasks(s string) ([]int, error) {
	counts, ok := tasksPerNode(s)
	if !ok {
		return nil, fmt.Errorf("cannot read %q, which should look like 4(x2),2", s)
	}
	return counts, nil
}

func tasksPerNode(s string) ([]int, bool) {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		num, rep, found := strings.Cut(part, "(x")
		n, err := strconv.Atoi(num)
		if err != nil || n < 1 || n > maxWorld {
			return nil, false
		}
		times := 1
		if found {
			times, err = strconv.Atoi(strings.TrimSuffix(rep, ")"))
			if err != nil || times < 1 || !strings.HasSuffix(rep, ")") || times+len(out) > maxWorld {
				return nil, false
			}
		}
		for range times {
			out = append(out, n)
		}
	}
	return out, true
}

// SlurmHosts expands a node list of Slurm: "node[03-05,9],x" means node03, node04, node05, node9, x. A name may have several brackets, of which the last
// counts fastest: "r[1-2]n[0-1]" means r1n0, r1n1, r2n0, r2n1.
func SlurmHosts(list string) ([]string, error) {
	var out []string
	for _, item := range splitOutside(list) {
		names, err := expand(strings.TrimSpace(item))
		if err != nil {
			return nil, fmt.Errorf("cannot read the node list %.200q: %w", list, err)
		}
		if out = append(out, names...); len(out) > maxWorld {
			return nil, fmt.Errorf("the node list %.200q has more than %d nodes", list, maxWorld)
		}
	}
	return out, nil
}

// splitOutside splits at commas that are not in brackets.
func splitOutside(list string) (out []string) {
	depth, from := 0, 0
	for i := range len(list) {
		switch {
		case list[i] == '[':
			depth++
		case list[i] == ']':
			depth--
		case list[i] == ',' && depth == 0:
			out, from = append(out, list[from:i]), i+1
		}
	}
	return append(out, list[from:])
}

// expand expands one name with brackets.
func expand(item string) ([]string, error) {
	if item == "" {
		return nil, errors.New("a name is empty")
	}
	out := []string{""}
	for rest := item; rest != ""; {
		before, inside, found := strings.Cut(rest, "[")
		if strings.Contains(before, "]") {
			return nil, fmt.Errorf("%q has a ] without a [", item)
		}
		for i := range out {
			out[i] += before
		}
		if !found {
			break
		}
		in, after, closed := strings.Cut(inside, "]")
		if !closed || strings.Contains(in, "[") {
			return nil, fmt.Errorf("%q has a [ without a ]", item)
		}
		values, err := ranges(in)
		if err != nil {
			return nil, err
		}
		if len(out)*len(values) > maxWorld {
			return nil, fmt.Errorf("%q are more than %d nodes", item, maxWorld)
		}
		next := make([]string, 0, len(out)*len(values))
		for _, o := range out {
			for _, v := range values {
				next = append(next, o+v)
			}
		}
		out, rest = next, after
	}
	if slices.Contains(out, "") {
		return nil, errors.New("a name is empty")
	}
	return out, nil
}

// ranges expands "03-05,9": the width of the first number is kept.
func ranges(s string) ([]string, error) {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		if !isRange {
			hi = lo
		}
		a, errA := strconv.ParseUint(lo, 10, 32)
		b, errB := strconv.ParseUint(hi, 10, 32)
		if errA != nil || errB != nil || b < a || b-a > maxWorld || len(out) > maxWorld {
			return nil, fmt.Errorf("%q is not a range of numbers", part)
		}
		for n := a; n <= b; n++ {
			out = append(out, fmt.Sprintf("%0*d", len(lo), n))
		}
	}
	return out, nil
}
