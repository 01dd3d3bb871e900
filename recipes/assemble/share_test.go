package assemble

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train/data"
)

// Ranks that share a folder open it with rank 0's listing: rank 1 lists nothing, so it does not notice that the folder it opens is empty.
func TestOneListingForAllRanks(t *testing.T) {
	for _, shared := range []string{"auto", "true", "false"} {
		r, err := recipes.Load("resnet50-finetune")
		if err != nil {
			t.Fatal(err)
		}
		r.Data.Shared = shared
		root, err := locate(&r.Data, near(r))
		if err != nil {
			t.Fatal(err)
		}
		g, err := shm.NewLocal(2)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		sets, errs := make([]data.Source, 2), make([]error, 2)
		for rank := range g {
			wg.Go(func() {
				defer g[rank].Close()
				id := launch.Identity{Rank: rank, World: 2, LocalRank: rank, LocalWorld: 2, Nodes: 1}
				how, err := share(t.Context(), r, Rank{Identity: id, Comm: g[rank]}, root)
				if err != nil || (how.group != nil) != (shared != "false") {
					t.Errorf("shared = %s, rank %d: %+v %v", shared, rank, how.group, err)
					return
				}
				at := []string{root, filepath.Join(t.TempDir(), "empty")}[rank]
				sets[rank], errs[rank] = opening{r: r, root: at, log: &notices{rank: rank}, how: how}.open(r.Data.TrainSplit, nil, true)
			})
		}
		wg.Wait()
		if errs[0] != nil || (errs[1] == nil) != (shared != "false") {
			t.Fatalf("shared = %s: %v", shared, errs)
		}
		if errs[1] == nil && (sets[0].Len() == 0 || sets[0].Len() != sets[1].Len()) {
			t.Errorf("shared = %s: %d and %d pictures", shared, sets[0].Len(), sets[1].Len())
		}
	}
}
