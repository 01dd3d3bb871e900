package assemble

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// What every rank of a job would log alike is a warning once: on rank 0. A held-out picture is read by one rank only, so that rank reports it.
func TestNoticesAreLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(old)
	for rank := range 3 {
		n := &notices{rank: rank}
		training, heldOut := n.damaged(true), n.damaged(false)
		for range 2 {
			n.turned("turned.jpg")
			training("training.jpg", "cut")
			if rank == 2 {
				heldOut("held-out.jpg", "cut")
			}
		}
		r := decoded(t, "run.steps=3", "schedule.warmup_epochs=5", "data.kind=synthetic")
		if _, err := Schedule(r, 16, rank)(3, 10); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"turned.jpg", "training.jpg", "held-out.jpg", "ends during warm-up"} {
		if n := strings.Count(out.String(), want); n != 1 {
			t.Errorf("%q is logged %d times in\n%s", want, n, out.String())
		}
	}
}
