package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/recipes/assemble"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/dirlock"
	"github.com/gotrain/gotrain/train/telemetry"
)

// trainer makes the trainer of one rank: it meets the other ranks and opens data and logs.
func (a *app) trainer(ctx context.Context, r *recipes.Recipe, id launch.Identity, term *telemetry.Terminal,
	build func(assemble.Rank) (train.Config, error)) (*train.Trainer, error) {
	who := telemetry.Identity{Node: max(0, id.NodeRank), Rank: id.Rank, World: id.World}
	slog.SetDefault(slog.New(telemetry.NewHandler(term, who, telemetry.LogOptions{Level: a.level.least(), NoPrefix: id.Source == launch.SourceGotrain})))
	slog.Debug("identity", "who", id.String())
	place, err := launch.Place(id, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	if place.Why != "" && r.Train.Threads == 0 {
		slog.Info(place.Why)
	}
	// Ranks meet before they open data, which may take long on one of them: it can tell the others only once they have met.
	links, err := assemble.Links(r)
	if err != nil {
		return nil, err
	}
	group, err := train.MeetBy(ctx, id, links)
	if err != nil {
		return nil, err
	}
	a.group = group
	id = train.Placed(id, group)
	var t *train.Trainer
	opened := comm.Steady(group, "opening the data", nil)
	cfg, err := build(assemble.Rank{Identity: id, Placement: place, Comm: group})
	opened()
	if err == nil {
		cfg.Comm = group
		t, err = train.New(train.WithConfig(cfg))
	}
	if err != nil && group != nil {
		launch.Report(err)
		group.Abort(err)
		group.Close()
	}
	return t, err
}

// leave leaves the job in order, so that ranks on other machines that are still at their last collective do not take the end of this process for a failure.
// After a failure, of which the peers know, the process just ends.
func (a *app) leave(err error) error {
	if a.group == nil || err != nil && !errors.Is(err, train.ErrStopped) {
		return err
	}
	if gone := a.group.Close(); gone != nil && err == nil {
		return fmt.Errorf("leaving the job: %w", gone)
	}
	return err
}

// trainWork trains one rank according to the recipe.
func trainWork(ctx context.Context, a *app, r *recipes.Recipe, id launch.Identity) error {
	if id.Source != launch.SourceSingle && id.Rank == 0 && id.World != r.Train.Ranks && r.Chose("train.ranks") {
		by := id.Source
		if by == launch.SourceGotrain { // hcclrun sets the same variables
			by = "the launcher"
		}
		fmt.Fprintf(a.err, "%d ranks, set by %s; train.ranks = %d is ignored\n", id.World, by, r.Train.Ranks)
	}
	term := telemetry.Stdout()
	resumes := func() bool {
		return r.Checkpoint.Enabled && r.Checkpoint.Resume == "auto" && checkpoint.Any(r.Checkpoint.Dir)
	}
	return untilStopped(ctx, id, resumes, func(ctx context.Context, run func(stoppable)) error {
		var running atomic.Pointer[train.Trainer]
		var lock *dirlock.Lock
		if id.Rank == 0 { // before anything is written and before the ranks meet, so no rank writes into another job's folder
			var err error
			lock, err = train.Own(ctx, r.Run.OutputDir, id.World == 1, func(error) {
				if t := running.Load(); t != nil {
					t.Stop()
				}
			})
			if err != nil {
				return err
			}
			defer lock.Release()
		}
		var sinks []telemetry.Sink
		t, err := a.trainer(ctx, r, id, term, func(k assemble.Rank) (train.Config, error) {
			c, err := assemble.Config(ctx, r, k)
			if err == nil {
				sinks, err = assemble.Sinks(r, id, a.level.console(term))
			}
			c.Sinks, c.Lock = sinks, lock
			return c, err
		})
		if err != nil {
			for _, s := range sinks {
				s.Close()
			}
			return err
		}
		running.Store(t)
		run(t)
		_, err = t.Run(context.WithoutCancel(ctx))
		err = a.leave(err)
		if lock != nil && err != nil {
			if gone := lock.Check(); errors.Is(gone, dirlock.ErrLost) {
				err = gone // the reason why the run ended
			}
		}
		if errors.Is(err, train.ErrStopped) && id.Source == launch.SourceGotrain {
			return launch.WithCode(launch.ExitCode(err), errors.New("")) // rank 0's console and the supervisor print the message
		}
		return err
	})
}

// evalWork evaluates a checkpoint on one rank.
func evalWork(ctx context.Context, a *app, r *recipes.Recipe, id launch.Identity, from assemble.Trained, f *evalFlags) error {
	term := telemetry.NewTerminal(os.Stderr, 0, false) // the standard output is for the result
	return untilStopped(ctx, id, func() bool { return false }, func(ctx context.Context, run func(stoppable)) error {
		var held data.Source
		t, err := a.trainer(ctx, r, id, term, func(k assemble.Rank) (train.Config, error) {
			c, err := assemble.EvalConfig(ctx, r, k, from)
			held = c.Eval
			return c, err
		})
		if err != nil {
			return err
		}
		run(t)
		begin := time.Now()
		var v map[string]float64
		var all []train.Sample
		if f.samples() {
			v, all, err = t.EvaluateSamples(context.WithoutCancel(ctx), f.top)
		} else {
			v, err = t.Evaluate(context.WithoutCancel(ctx))
		}
		err = a.leave(err)
		if err != nil || id.Rank != 0 {
			return err
		}
		var e *evaluation
		if f.samples() {
			if e, err = newEvaluation(all, held, t.Outputs()); err == nil {
				err = e.files(f)
			}
			if err != nil {
				return err
			}
		}
		if f.asJSON && e != nil {
			return a.printJSON(e.detailed(v, f))
		}
		if f.asJSON {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.out, "%s: loss %.4f", from.Path, v["loss"])
		for _, name := range sorted(v) {
			switch name {
			case "loss", "items":
			case "perplexity":
				fmt.Fprintf(a.out, ", perplexity %.3f", v[name])
			default:
				fmt.Fprintf(a.out, ", %s %.2f %%", name, 100*v[name])
			}
		}
		fmt.Fprintf(a.out, " over %.0f items in %v\n", v["items"], time.Since(begin).Round(100*time.Millisecond))
		if e != nil {
			return e.show(a.out, f)
		}
		return nil
	})
}
