package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph/models/llama"
	_ "github.com/gotrain/gotrain/npu/cpu" // the devices of this binary
	_ "github.com/gotrain/gotrain/npu/ref"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/recipes/assemble"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/checkpoint/tfjs"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/dirlock"
	"github.com/gotrain/gotrain/train/telemetry"
)

// trainer makes the trainer of one rank: it meets the other ranks and opens data and logs.
func trainer(ctx context.Context, r *recipes.Recipe, id launch.Identity, term *telemetry.Terminal, change func(*train.Config) error) (*train.Trainer, error) {
	who := telemetry.Identity{Node: max(0, id.NodeRank), Rank: id.Rank, World: id.World}
	slog.SetDefault(slog.New(telemetry.NewHandler(term, who, telemetry.LogOptions{NoPrefix: id.Source == launch.SourceGotrain})))
	slog.Debug("identity", "who", id.String())
	place, err := launch.Place(id, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	cfg, err := assemble.Config(r, assemble.Rank{Identity: id, Placement: place})
	if err != nil {
		return nil, err
	}
	if cfg.Comm, err = train.Meet(ctx, id); err != nil {
		return nil, err
	}
	var t *train.Trainer
	if err = change(&cfg); err == nil {
		t, err = train.New(train.WithConfig(cfg))
	}
	if err != nil && cfg.Comm != nil {
		launch.Report(err)
		cfg.Comm.Abort(err)
		cfg.Comm.Close()
	}
	return t, err
}

// trainWork trains as the recipe says; it is the work of one rank.
func trainWork(ctx context.Context, a *app, r *recipes.Recipe, id launch.Identity) error {
	if id.Source != launch.SourceSingle && id.Rank == 0 && id.World != r.Train.Ranks {
		fmt.Fprintf(a.err, "%d ranks by %s; train.ranks = %d does not count\n", id.World, id.Source, r.Train.Ranks)
	}
	term := telemetry.Stdout()
	return untilStopped(ctx, func(ctx context.Context, stopper func(func())) error {
		var running atomic.Pointer[train.Trainer]
		var lock *dirlock.Lock
		if id.Rank == 0 { // before anything is written, and before the ranks meet: so no rank of this job writes into the folder of another
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
		t, err := trainer(ctx, r, id, term, func(c *train.Config) (err error) {
			sinks, err = assemble.Sinks(r, id, term)
			c.Sinks, c.Lock = sinks, lock
			return err
		})
		if err != nil {
			for _, s := range sinks {
				s.Close()
			}
			return err
		}
		running.Store(t)
		stopper(t.Stop)
		_, err = t.Run(context.WithoutCancel(ctx))
		if lock != nil && err != nil {
			if gone := lock.Check(); errors.Is(gone, dirlock.ErrLost) {
				err = gone // it is why the run ended
			}
		}
		if errors.Is(err, train.ErrStopped) && id.Source == launch.SourceGotrain {
			return launch.WithCode(launch.ExitStopped, errors.New("")) // the supervisor has the words
		}
		return err
	})
}

// evalWork evaluates a checkpoint; it is the work of one rank.
func evalWork(ctx context.Context, a *app, r *recipes.Recipe, id launch.Identity, path string, asJSON bool) error {
	term := telemetry.Stdout()
	return untilStopped(ctx, func(ctx context.Context, stopper func(func())) error {
		t, err := trainer(ctx, r, id, term, func(c *train.Config) error {
			c.InitFrom, c.InitPartial, c.ResumeFrom, c.Resume, c.SaveDir, c.SaveEvery = path, false, "", false, "", 0
			return nil
		})
		if err != nil {
			return err
		}
		stopper(t.Stop)
		begin := time.Now()
		v, err := t.Evaluate(context.WithoutCancel(ctx))
		if err != nil || id.Rank != 0 {
			return err
		}
		if asJSON {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.out, "%s: loss %.4f", path, v["loss"])
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
		return nil
	})
}

// findData looks whether the data set is there, without opening it.
func findData(r *recipes.Recipe) error {
	if r.Data.Kind == "synthetic" {
		return nil
	}
	_, err := data.Locate(r.Data.Root, r.Dir())
	return launch.WithCode(launch.ExitNoInput, err)
}

// describeData opens the data sets and says in one line what a run would do with them.
func describeData(r *recipes.Recipe) (string, error) {
	ranks := r.Train.Ranks
	if err := assemble.FindWeights(r); err != nil {
		return "", err
	}
	cfg, err := assemble.Config(r, assemble.Rank{Identity: launch.Identity{World: ranks, LocalWorld: ranks}})
	if err != nil {
		return "", err
	}
	if _, err := train.New(train.WithConfig(cfg)); err != nil {
		return "", launch.WithCode(launch.ExitRecipe, err)
	}
	what, err := assemble.Sample(r, cfg.Data)
	if err != nil {
		return "", launch.WithCode(launch.ExitRecipe, err)
	}
	held := ""
	if cfg.Eval != nil {
		held = fmt.Sprintf(" and %d held-out", cfg.Eval.Len())
	}
	return fmt.Sprintf("%d training%s samples %s, global batch %d on %d ranks", cfg.Data.Len(), held, what, r.GlobalBatch(ranks), ranks), nil
}

// planned is a plan with what it is based on.
type planned struct {
	*train.Summary
	Assumed *assemble.Assumed `json:"assumed,omitempty"` // nil: the data were looked at
}

// summarise plans a run; blind leaves the data alone. The caller calls done when it is through with the program.
func summarise(r *recipes.Recipe, blind bool) (*planned, func(), error) {
	ranks := r.Train.Ranks
	id := launch.Identity{World: ranks, LocalWorld: ranks, Nodes: 1}
	place, err := launch.Place(id, os.LookupEnv)
	if err != nil {
		return nil, nil, err
	}
	cfg, assumed, err := assemble.Plan(r, assemble.Rank{Identity: id, Placement: place}, blind)
	if err != nil {
		return nil, nil, err
	}
	t, err := train.New(train.WithConfig(cfg))
	if err != nil {
		return nil, nil, err
	}
	s, err := t.Summarise(ranks)
	if err != nil {
		t.Close()
		return nil, nil, err
	}
	if assumed != nil && !assumed.Epoch {
		s.StepsPerPass = 0
	}
	return &planned{s, assumed}, func() { t.Close() }, nil
}

// inspection is what inspect shows of a checkpoint.
type inspection struct {
	Path   string           `json:"path"`
	State  checkpoint.State `json:"state"`
	Files  []inspectedFile  `json:"files"`
	Others []inspectedInfo  `json:"checkpoints,omitempty"` // of the folder, newest first
	Llama  *llama.Config    `json:"llama,omitempty"`
}

type inspectedFile struct {
	Name     string               `json:"name"`
	Bytes    int64                `json:"bytes"`
	SHA256   string               `json:"sha256"`
	Elements int64                `json:"elements,omitempty"`
	Tensors  []safetensors.Tensor `json:"tensors,omitempty"`
}

type inspectedInfo struct {
	Name  string    `json:"name"`
	Step  int64     `json:"step"`
	Time  time.Time `json:"time"`
	Bytes int64     `json:"bytes"`
	Error string    `json:"error,omitempty"`
}

// load opens a checkpoint, or the newest good one of a folder of several.
func load(ctx context.Context, path string) (*checkpoint.Checkpoint, *checkpoint.Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, nil, launch.WithCode(launch.ExitNoInput, fmt.Errorf("no checkpoint there: %w", err))
	}
	if _, err := os.Stat(filepath.Join(path, checkpoint.ManifestFile)); err == nil {
		c, err := checkpoint.New(checkpoint.OS{}, filepath.Dir(path), 0).Load(ctx, filepath.Base(path))
		return c, nil, launch.WithCode(launch.ExitNoInput, err)
	}
	s := checkpoint.New(checkpoint.OS{}, path, 0)
	c, report, err := s.Latest(ctx)
	if err != nil {
		return nil, nil, launch.WithCode(launch.ExitNoInput, err)
	}
	if report.FellBack() {
		fmt.Fprintln(os.Stderr, report)
	}
	return c, s, nil
}

// openCheckpoint finds the checkpoint to evaluate and the recipe in it.
func openCheckpoint(ctx context.Context, path string) (dir, recipe string, err error) {
	c, _, err := load(ctx, findModel(path))
	if err != nil {
		return "", "", err
	}
	return c.Path, c.State.Recipe, c.Close()
}

func inspect(ctx context.Context, path string) (*inspection, error) {
	c, store, err := load(ctx, path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	in := &inspection{Path: c.Path, State: c.State, Llama: llamaOf(c)}
	for _, e := range c.Manifest.Files {
		f := inspectedFile{Name: e.Name, Bytes: e.Size, SHA256: e.SHA256}
		if t := c.File(e.Name); t != nil {
			f.Tensors = t.Tensors()
			for _, x := range f.Tensors {
				n := int64(1)
				for _, d := range x.Shape {
					n *= int64(d)
				}
				f.Elements += n
			}
		}
		in.Files = append(in.Files, f)
	}
	if store == nil {
		return in, nil
	}
	infos, err := store.List(ctx)
	for _, i := range infos {
		o := inspectedInfo{Name: i.Name, Step: i.Step, Time: i.Time, Bytes: i.Bytes}
		if i.Err != nil {
			o.Error = i.Err.Error()
		}
		in.Others = append(in.Others, o)
	}
	return in, err
}

// importTFJS converts weights and says how large the file is.
func importTFJS(ctx context.Context, from, to string) (int64, error) {
	tensors, err := tfjs.Load(ctx, from)
	if err != nil {
		return 0, launch.WithCode(launch.ExitNoInput, err)
	}
	if err := tfjs.Write(ctx, tensors, to); err != nil {
		return 0, launch.WithCode(launch.ExitStorage, err)
	}
	st, err := os.Stat(to)
	if err != nil {
		return 0, launch.WithCode(launch.ExitStorage, err)
	}
	return st.Size(), nil
}
