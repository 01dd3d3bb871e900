package nodes

import (
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/npu"
)

func TestRail(t *testing.T) {
	for _, c := range []struct {
		nodeOf []int
		rank   int
		want   []int
	}{
		{[]int{0, 0, 1, 1}, 0, []int{0, 2}},
		{[]int{0, 0, 1, 1}, 3, []int{1, 3}},
		{[]int{0, 1, 0, 1}, 2, []int{2, 3}},
		{[]int{1, 0, 1, 0}, 0, []int{1, 0}}, // in the order of nodes
		{[]int{0, 1, 1, 1}, 1, []int{0, 1}},
		{[]int{0, 1, 1, 1}, 2, nil},
		{[]int{0, 0, 0}, 1, nil},
	} {
		if got, err := Rail(c.rank, c.nodeOf); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("rank %d of %v: %v, %v, want %v", c.rank, c.nodeOf, got, err, c.want)
		}
	}
	for _, c := range []struct {
		nodeOf []int
		rank   int
		want   string
	}{
		{[]int{0, 2}, 0, "node 2 in a job of 2 ranks"},
		{[]int{0, 2, 2}, 0, "node 1 has no rank"},
		{[]int{0, -1}, 0, "rank 1 is on node -1"},
		{[]int{0}, 1, "rank 1 in a job of 1"},
	} {
		if _, err := Rail(c.rank, c.nodeOf); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.nodeOf, err, c.want)
		}
	}
}

// Groups that do not fit the map are refused.
func TestNewRefuses(t *testing.T) {
	m := member{newJob(2), 0}
	for want, cfg := range map[string]Config{
		"an inner group and a control": {NodeOf: []int{0, 1}},
		"this rank as 0 of 1":          {NodeOf: []int{0, 0}, Inner: self.New(), Control: m},
		"an outer group: false":        {NodeOf: []int{0, 1}, Inner: self.New(), Control: m},
		"the job is on 2 nodes":        {NodeOf: []int{0, 1}, Inner: self.New(), Outer: self.New(), Control: m},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want: %s", err, want)
		}
	}
}

func TestHead(t *testing.T) {
	h := headOf(comm.Call{Kind: comm.Reduce, Op: comm.Max, DType: npu.BF16, Root: 3, Elems: 1 << 40}, 77, 5)
	b := make([]byte, headBytes)
	h.put(b)
	if got := readHead(b); got != h || got.String() != "reduce #77 bf16[1099511627776] max root 3" {
		t.Errorf("%+v, %v", got, got)
	}
}

func TestTally(t *testing.T) {
	n := withTally(withTally(0, true, 5), false, 9)
	for _, c := range []struct {
		branch bool
		calls  int64
		want   bool
	}{{false, 9, false}, {false, 10, true}, {false, 8, false}, {true, 5, false}, {true, 6, true}, {true, 1, false}} {
		if got := behind(n, c.branch, c.calls); got != c.want {
			t.Errorf("call %d, branch %v: behind %v", c.calls, c.branch, got)
		}
	}
	wrap := int64(1) << tallyBits
	if n := withTally(0, false, wrap-1); !behind(n, false, wrap) || behind(n, false, wrap-1) {
		t.Error("after the count has wrapped around")
	}
	if n := withTally(0, false, wrap+1); behind(n, false, wrap) || n != 1 {
		t.Error("before the count has wrapped around")
	}
}

// What a report says: the levels, and where calls are cut.
func TestDescribe(t *testing.T) {
	for name, want := range map[string]string{"2x2": "2 ranks of a host exchange", "1+3": "the first rank of each host"} {
		g := group(t, maps[name], nil)
		l := comm.Describe(g[1])
		if len(l) != 2 || l[0].Ranks != len(g[1].(*Comm).mine()) || l[1].Ranks != 2 || !strings.Contains(strings.Join(l[1].Notes, "; "), want) {
			t.Errorf("%s: %+v", name, l)
		}
		for r, c := range g {
			if its := comm.Describe(c); len(its) != 2 || its[1].Transport != l[1].Transport {
				t.Errorf("%s: rank %d: %+v", name, r, its)
			}
		}
		for elems, want := range map[int64]string{10: "in one trip", 1 << 20: "in pieces"} {
			if got := l[0].Algorithm(comm.Call{Kind: comm.AllReduce, DType: npu.F32, Elems: elems}); got != want {
				t.Errorf("%s, %d elements: %s", name, elems, got)
			}
		}
		closeAll(g)
	}
}

func TestFold(t *testing.T) {
	for want, nodeOf := range map[string][]int{
		comm.InRankOrder:              {0, 1, 2},
		"node by node: ranks 0 1 | 2": {0, 0, 1},
		"node by node: ranks 0 2 | 1": {0, 1, 0},
		"node by node: ranks 1 | 0":   {1, 0},
	} {
		g := group(t, nodeOf, nil)
		if got := comm.Fold(g[len(g)-1]); got != want {
			t.Errorf("%v: %q", nodeOf, got)
		}
		closeAll(g)
	}
}
