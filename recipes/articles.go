package recipes

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
)

// article is a variable that articles and scripts set in the belief that HCCL reads it. HCCL does not; gotrain gives it the meaning that is expected.
type article struct {
	name string
	keys []string                            // of the recipe that it stands for
	read func(text string) (any, error)      // the value of these keys
	says func(text string, value any) string // what it has become, if it stands for no key
}

// articles are in the order of messages. Package ddp/comm/hccl/settings reads the same names for NPUs.
var articles = []article{
	{name: "HCCL_TOPOLOGY", keys: []string{"comm.topology"}, read: oneOf("use mesh, tree, ring or auto", map[string]string{
		"mesh": "mesh", "fullmesh": "mesh", "auto": "auto", "tree": "tree", "ring": "ring"})},
	{name: "HCCL_GRAD_COMPRESS", keys: []string{"comm.compress"}, read: oneOf("use fp16, bf16, int8 or none", map[string]string{
		"fp16": "f16", "float16": "f16", "f16": "f16", "bf16": "bf16", "bfloat16": "bf16", "int8": "int8", "none": "none", "off": "none", "0": "none", "": "none"})},
	{name: "HCCL_TIMEOUT", keys: []string{"train.collective_timeout_seconds", "comm.start_timeout_seconds"}, read: whole(365*24*60*60,
		"give whole seconds, such as 600")},
	{name: "HCCL_BUFFER_SIZE", read: whole(1<<40, "give it in bytes, as 209715200"), says: func(string, any) string {
		return "has no effect between hosts: TCP takes 128 KiB for each peer. With NPUs it is the buffer of HCCL"
	}},
}

func oneOf(hint string, words map[string]string) func(string) (any, error) {
	return func(text string) (any, error) {
		if v, ok := words[strings.ToLower(text)]; ok {
			return v, nil
		}
		return nil, errors.New("unknown value\nhint: " + hint)
	}
}

func whole(most uint64, hint string) func(string) (any, error) {
	return func(text string) (any, error) {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || n == 0 || n > most {
			return nil, errors.New("not a valid number\nhint: " + hint)
		}
		return float64(n), nil
	}
}

// Environ takes the words of articles (HCCL_TOPOLOGY, HCCL_GRAD_COMPRESS, HCCL_TIMEOUT, HCCL_BUFFER_SIZE) from the environment for keys that the recipe
// does not set: a key of the recipe wins. Taken says what they have become. An unknown word is an error.
func (r *Recipe) Environ(lookup launch.Lookup) error {
	var taken []string
	var wrong []error
	for _, a := range articles {
		text, set := lookup(a.name)
		if !set {
			continue
		}
		text = strings.TrimSpace(text)
		said := a.name + "=" + text
		if strings.ContainsFunc(text, func(c rune) bool { return !strconv.IsPrint(c) }) {
			said = a.name + "=" + strconv.Quote(text)
		}
		value, err := a.read(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s in the environment: %w", said, err))
			continue
		}
		if a.says != nil {
			taken = append(taken, said+" "+a.says(text, value))
		}
		for _, key := range a.keys {
			f := byKey()[key]
			if r.has(key) {
				taken = append(taken, fmt.Sprintf("%s has no effect: %s sets %s = %s", said, r.origin.at[key].file, key, literal(f.in(r))))
				continue
			}
			if err := f.assign(r, value); err != nil {
				wrong = append(wrong, fmt.Errorf("%s in the environment: %w", said, err))
				continue
			}
			r.origin.at[key] = place{file: said + " in the environment"}
			taken = append(taken, fmt.Sprintf("%s = %s from the environment (%s)", key, literal(f.in(r)), said))
		}
	}
	if len(wrong) > 0 {
		return launch.WithCode(launch.ExitUsage, errors.Join(wrong...))
	}
	if len(taken) == 0 {
		return nil
	}
	if p := r.check(); len(p) > 0 {
		return p
	}
	r.warnings, r.taken = r.suspicions(), taken
	return nil
}

// Taken has a line for each variable of the environment that Environ has read.
func (r *Recipe) Taken() []string { return r.taken }

// launcherWords are words of configurations that describe machines. A recipe describes a training, whatever it runs on.
var launcherWords = map[string]string{
	"nnodes": "--nnodes", "num_nodes": "--nnodes", "num_machines": "--nnodes", "node_rank": "--node_rank", "machine_rank": "--node_rank",
	"master_addr": "--master_addr", "master_address": "--master_addr", "master_ip": "--master_addr", "main_process_ip": "--master_addr",
	"master_port": "--master_port", "main_process_port": "--master_port", "rdzv_endpoint": "--rdzv_endpoint", "rdzv_id": "--rdzv_id",
	"rdzv_backend": "--rdzv_backend", "init_method": "--rdzv_endpoint", "dist_url": "--rdzv_endpoint", "hostfile": "--hostfile", "hosts": "-H",
	"max_restarts": "--max-restarts",
}

// launcherWord says where a word that describes machines belongs.
func launcherWord(name string) (Problem, bool) {
	flag, ok := launcherWords[strings.ReplaceAll(strings.ToLower(name), "-", "_")]
	if !ok {
		return Problem{}, false
	}
	hint := "machines are no part of a recipe, so that it runs on any number of them: give " + flag + " to hcclrun, as hcclrun --nnodes 8 " +
		"--nproc_per_node 8 --node_rank 0 --master_addr ADDRESS --master_port 29500 gotrain run RECIPE, or once for all machines hcclrun -H n1:8,n2:8 " +
		"gotrain run RECIPE"
	if slices.Contains([]string{"--hostfile", "-H", "--max-restarts"}, flag) {
		hint = "machines are no part of a recipe, so that it runs on any number of them: give " + flag + " to hcclrun, as hcclrun -H n1:8,n2:8 gotrain run RECIPE"
	}
	return Problem{Msg: "is for the launcher", Hint: hint}, true
}
