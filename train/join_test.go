package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/optim"
)

func TestJobJoinsRanks(t *testing.T) {
	losses := make([]float64, 2)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for r := range 2 {
		wg.Go(func() {
			errs[r] = func() error {
				job, err := JoinAs(context.Background(), launch.Identity{
					Rank: r, World: 2, LocalRank: r, LocalWorld: 2, Nodes: 1, JobID: fmt.Sprintf("test-join-%d", os.Getpid()), Source: launch.SourceGotrain,
				})
				if err != nil {
					return err
				}
				tr, err := New(WithModel(mlp), WithData(noise(t, 64), 8), WithSteps(5), WithLR(0.1),
					WithOptimizer(optim.Default(optim.SGD, 0)), WithDevice("ref", 1), WithJob(job))
				if err != nil {
					return err
				}
				res, err := tr.Run(context.Background())
				losses[r] = res.Loss
				return errors.Join(err, job.Close(), job.Close())
			}()
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if losses[0] != losses[1] || losses[0] == 0 {
		t.Errorf("ranks report losses %v", losses)
	}
}

// TestStartThatTakesTooLong checks for the exit code of a deadline, and for blame of the missing rank.
func TestStartThatTakesTooLong(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := JoinAs(ctx, launch.Identity{World: 2, LocalWorld: 2, Nodes: 1, JobID: fmt.Sprintf("test-late-%d", os.Getpid())})
	if launch.ExitCode(err) != launch.ExitTimeout || !slices.Equal(launch.Blamed(err), []int{1}) {
		t.Errorf("exit code %d, blames %v: %v", launch.ExitCode(err), launch.Blamed(err), err)
	}
}

// Ranks of several machines need a place to meet, and cannot share memory.
func TestSeveralMachines(t *testing.T) {
	id := launch.Identity{World: 4, LocalWorld: 2, Nodes: 2, JobID: "x"}
	for _, name := range []string{"GOTRAIN_MASTER_ADDR", "GOTRAIN_RENDEZVOUS", "MASTER_ADDR", "PET_RDZV_ENDPOINT", "PMI_FD", "PMIX_NAMESPACE"} {
		t.Setenv(name, "")
	}
	if _, err := JoinAs(context.Background(), id); launch.ExitCode(err) != launch.ExitUsage || !strings.Contains(err.Error(), "MASTER_ADDR") {
		t.Errorf("nowhere to meet: %v", err)
	}
	if _, err := MeetBy(context.Background(), id, Links{Transport: "shm"}); launch.ExitCode(err) != launch.ExitUnavailable {
		t.Errorf("shm: %v", err)
	}
}

// Variables left in the environment by another program make a rank wait for peers that never start.
func TestWaitingNamesTheVariables(t *testing.T) {
	lookup := launch.LookupIn([]string{"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0"})
	id, err := launch.WhoAmI(lookup)
	if err != nil {
		t.Fatal(err)
	}
	want := "rank 0 of 2 waits for ranks [1] to start\n" +
		"hint: the environment announces 2 ranks (RANK=0, WORLD_SIZE=2, LOCAL_RANK=0); to run alone, unset these variables or set GOTRAIN_LAUNCHER=none"
	if got := waiting(id, []int{1}, lookup); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
