package recipes

import (
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

// from reads a small recipe with an environment.
func from(t *testing.T, text, env string, sets ...string) (*Recipe, error) {
	t.Helper()
	r, err := Decode("[run]\nsteps = 3\n[data]\nkind = \"synthetic\"\n"+text, "r.toml", sets...)
	if err != nil {
		t.Fatal(err)
	}
	return r, r.Environ(launch.LookupIn(strings.Fields(env)))
}

func TestWordsOfArticles(t *testing.T) {
	for _, c := range []struct{ text, env, topology, compress, says string }{
		{"", "", "auto", "none", ""},
		{"", "HCCL_TOPOLOGY=mesh", "mesh", "none", `comm.topology = "mesh" from the environment (HCCL_TOPOLOGY=mesh)`},
		{"", "HCCL_TOPOLOGY=fullmesh", "mesh", "none", ""},
		{"", "HCCL_TOPOLOGY=tree", "tree", "none", ""},
		{"", "HCCL_GRAD_COMPRESS=", "auto", "none", ""},
		{"[comm]\ntopology = \"ring\"", "HCCL_TOPOLOGY=mesh", "ring", "none", `HCCL_TOPOLOGY=mesh has no effect: r.toml sets comm.topology = "ring"`},
		{"", "HCCL_GRAD_COMPRESS=fp16 HCCL_TOPOLOGY=Tree", "tree", "f16", `comm.compress = "f16" from the environment (HCCL_GRAD_COMPRESS=fp16)`},
		{"", "HCCL_GRAD_COMPRESS=int8", "auto", "int8", ""},
		{"", "HCCL_GRAD_COMPRESS=none", "auto", "none", ""},
		{"", "HCCL_BUFFER_SIZE=268435456", "auto", "none", "HCCL_BUFFER_SIZE=268435456 has no effect between hosts: TCP takes 128 KiB for each peer"},
	} {
		r, err := from(t, c.text, c.env)
		if err != nil {
			t.Errorf("%s: %v", c.env, err)
			continue
		}
		said := strings.Join(r.Taken(), "\n")
		if r.Comm.Topology != c.topology || r.Comm.Compress != c.compress || !strings.Contains(said, c.says) || c.env == "" && said != "" {
			t.Errorf("%q with %s: topology %s, compress %s, said %q", c.text, c.env, r.Comm.Topology, r.Comm.Compress, said)
		}
	}
	r, err := from(t, "", "HCCL_TIMEOUT=300")
	if err != nil || r.Train.TimeoutSeconds != 300 || r.Comm.StartTimeout != 300 || len(r.Taken()) != 2 {
		t.Errorf("%v %v %q %v", r.Train.TimeoutSeconds, r.Comm.StartTimeout, r.Taken(), err)
	}
	r, err = from(t, "", "HCCL_TIMEOUT=900", "train.collective_timeout_seconds=30")
	if err != nil || r.Train.TimeoutSeconds != 30 || r.Comm.StartTimeout != 900 || !strings.Contains(r.Taken()[0], "--set sets") {
		t.Errorf("%v %v %q %v", r.Train.TimeoutSeconds, r.Comm.StartTimeout, r.Taken(), err)
	}
	// A stored recipe has what was taken, so that the environment of a later run changes nothing.
	again, err := Decode(r.String(), "stored")
	if err != nil || again.Environ(launch.LookupIn([]string{"HCCL_TIMEOUT=60"})) != nil || again.Comm.StartTimeout != 900 {
		t.Errorf("%v, %v", again.Comm.StartTimeout, err)
	}
}

func TestUnknownWordsOfArticles(t *testing.T) {
	for env, want := range map[string]string{
		"HCCL_TOPOLOGY=star":                       "HCCL_TOPOLOGY=star in the environment: unknown value\nhint: use mesh, tree, ring or auto",
		"HCCL_TOPOLOGY=":                           "use mesh, tree, ring or auto",
		"HCCL_GRAD_COMPRESS=zip":                   "hint: use fp16, bf16, int8 or none",
		"HCCL_GRAD_COMPRESS=1":                     "hint: use fp16, bf16, int8 or none",
		"HCCL_TIMEOUT=soon":                        "give whole seconds",
		"HCCL_TIMEOUT=0":                           "give whole seconds",
		"HCCL_BUFFER_SIZE=200M":                    "give it in bytes",
		"HCCL_TOPOLOGY=star\x1b[2J":                `HCCL_TOPOLOGY="star\x1b[2J" in the environment`,
		"HCCL_TOPOLOGY=x HCCL_TIMEOUT=y":           "HCCL_TIMEOUT=y",
		"HCCL_TIMEOUT=99999999999999999999 X=1 Y=": "give whole seconds",
	} {
		if r, err := from(t, "", env); err == nil || !strings.Contains(err.Error(), want) || launch.ExitCode(err) != launch.ExitUsage {
			t.Errorf("%s: %v, error %v (exit code %d), want one with %q", env, r.Taken(), err, launch.ExitCode(err), want)
		}
	}
	r, err := Decode("[run]\nsteps = 3\n[data]\nkind = \"synthetic\"\n", "r.toml", "train.device=npu")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Environ(launch.LookupIn([]string{"HCCL_GRAD_COMPRESS=int8"})); err == nil || !strings.Contains(err.Error(), "HCCL_GRAD_COMPRESS=int8") {
		t.Errorf("int8 on an NPU: %v", err)
	}
}

// The article's YAML has words that belong to the launcher, and two that are keys.
func TestWordsForTheLauncher(t *testing.T) {
	_, err := Decode(`nnodes = 8
node_rank = 0
master_addr = "192.168.1.10"
master_port = 29500
npu_count = 8
hccl_topology = "mesh"
[train]
nnodes = 8
init_method = "tcp://224.0.0.1:23456"
hostfile = "x"
`, "r.toml")
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"nnodes: is for the launcher (machines are no part of a recipe, so that it runs on any number of them: give --nnodes to hcclrun",
		"node_rank: is for the launcher", "give --node_rank", "master_addr: is for the launcher", "give --master_addr", "master_port: is for the launcher",
		"npu_count: unknown key at the top level (did you mean train.ranks?)", "hccl_topology: unknown key at the top level (did you mean comm.topology?)",
		"train.nnodes: is for the launcher", "train.init_method: is for the launcher", "give --rdzv_endpoint", "train.hostfile: is for the launcher",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}
