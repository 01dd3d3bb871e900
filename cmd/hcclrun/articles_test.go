package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

// The articles start eight machines with eight NPUs each by this line, with another --node_rank on each. hcclrun takes the same flags; here all eight
// run on one machine, and a shell stands for the program.
func TestTheArticlesEightMachines(t *testing.T) {
	const line = `--nproc_per_node=8 --nnodes=8 --node_rank=%d --master_addr=192.168.1.10 --master_port=29500 sh -c`
	seen := map[string]bool{}
	for node := range 8 {
		var out, errs bytes.Buffer
		show := `echo "$GOTRAIN_RANK of $GOTRAIN_WORLD_SIZE, $GOTRAIN_LOCAL_RANK of $GOTRAIN_LOCAL_WORLD_SIZE on $GOTRAIN_NODE_RANK of $GOTRAIN_NODES, ` +
			`$GOTRAIN_MASTER_ADDR:$GOTRAIN_MASTER_PORT $GOTRAIN_JOB_ID"`
		code := run(t.Context(), append(strings.Fields(fmt.Sprintf(line, node)), show), &out, &errs)
		if code != launch.ExitOK {
			t.Fatalf("node %d: exit code %d\n%s", node, code, errs.String())
		}
		for l := range strings.Lines(out.String()) {
			if _, text, ok := strings.Cut(l, "] "); ok { // rank 0 has no prefix
				l = text
			}
			seen[strings.TrimSpace(l)] = true
		}
	}
	for r := range 64 {
		if want := fmt.Sprintf("%d of 64, %d of 8 on %d of 8, 192.168.1.10:29500 nodes-192.168.1.10-29500-0", r, r%8, r/8); !seen[want] {
			t.Errorf("no rank says %q", want)
		}
	}
	if len(seen) != 64 {
		t.Errorf("%d ranks", len(seen))
	}
}

// The second article's init_method=tcp://224.0.0.1:23456 is a multicast address.
func TestTheArticlesMulticastAddress(t *testing.T) {
	for _, line := range []string{
		"--nnodes=2 --node_rank=0 --nproc_per_node=1 --rdzv_endpoint=tcp://224.0.0.1:23456 true",
		"--nnodes=2 --node_rank=0 --nproc_per_node=1 --master_addr=224.0.0.1 --master_port=23456 true",
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(line), &out, &errs); code != launch.ExitUsage || !strings.Contains(errs.String(), "give the address of rank 0") {
			t.Errorf("%s: exit code %d, %s", line, code, errs.String())
		}
	}
}

// In a pod of an operator hcclrun needs no flags.
func TestPods(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 LOCAL_RANK=0,1 MASTER_ADDR=10.0.0.1 MASTER_PORT=2222", "2 of 4; 3 of 4"},
		{"PET_NNODES=3 PET_NPROC_PER_NODE=1 PET_NODE_RANK=2 PET_MASTER_ADDR=m PET_MASTER_PORT=23456", "2 of 3"},
		{"RANK=2 WORLD_SIZE=3 MASTER_ADDR=m MASTER_PORT=23456 VC_TASK_INDEX=1", "2 of 3"},
	} {
		for kv := range strings.FieldsSeq(c.env) {
			name, value, _ := strings.Cut(kv, "=")
			t.Setenv(name, value)
		}
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"sh", "-c", `echo "$GOTRAIN_RANK of $GOTRAIN_WORLD_SIZE"`}, &out, &errs)
		for said := range strings.SplitSeq(c.want, "; ") {
			if code != launch.ExitOK || strings.Count(out.String(), said) != 1 {
				t.Errorf("%s: exit code %d, no %q in\n%s%s", c.env, code, said, out.String(), errs.String())
			}
		}
		for kv := range strings.FieldsSeq(c.env) {
			name, _, _ := strings.Cut(kv, "=")
			t.Setenv(name, "")
		}
	}
}
