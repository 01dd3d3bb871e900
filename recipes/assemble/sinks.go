package assemble

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train/telemetry"
)

// Sinks returns the event sinks that the recipe configures. Rank 0 has the console and the files, every rank has its own trace. Rank 0 also writes
// the resolved recipe next to the results. An error has exit code 74.
func Sinks(r *recipes.Recipe, id launch.Identity, term *telemetry.Terminal) ([]telemetry.Sink, error) {
	who := telemetry.Identity{Node: max(0, id.NodeRank), Rank: id.Rank, World: id.World}
	dir := r.Run.OutputDir
	var out []telemetry.Sink
	fail := func(err error) ([]telemetry.Sink, error) {
		for _, s := range out {
			s.Close()
		}
		return nil, launch.WithCode(launch.ExitStorage, fmt.Errorf("%w\nhint: set run.output_dir to another folder", err))
	}
	if id.Rank != 0 && !r.Log.Trace {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fail(err)
	}
	trace := fmt.Sprintf("trace-rank%d.json", id.Rank)
	for _, name := range []string{trace, "metrics.jsonl", "metrics.superseded.jsonl", RecipeFile, besideRecipe} {
		if err := noPipe(filepath.Join(dir, name)); err != nil {
			return fail(err)
		}
	}
	if r.Log.Trace {
		t, err := telemetry.NewTrace(filepath.Join(dir, trace), who, telemetry.TraceOptions{})
		if err != nil {
			return fail(err)
		}
		out = append(out, t)
	}
	if id.Rank != 0 {
		return out, nil
	}
	if r.Log.Console {
		out = append(out, telemetry.NewConsole(term, who, telemetry.ConsoleOptions{Every: int64(r.Log.EverySteps)}))
	}
	if r.Log.JSONL {
		j, err := telemetry.NewJSONL(filepath.Join(dir, "metrics.jsonl"))
		if err != nil {
			return fail(err)
		}
		out = append(out, j)
	}
	if r.Log.TensorBoard {
		tb, err := telemetry.NewTensorBoard(filepath.Join(dir, "tb"))
		if err != nil {
			return fail(err)
		}
		out = append(out, tb)
	}
	if err := writeRecipe(r); err != nil {
		return fail(err)
	}
	return out, nil
}

// noPipe refuses a file that is to be written but is a pipe: opening it waits for a reader, and nothing interrupts that.
func noPipe(path string) error {
	st, err := os.Stat(path)
	if err != nil || st.Mode()&os.ModeNamedPipe == 0 {
		return nil // what cannot be opened says so when it is opened
	}
	return fmt.Errorf("%s is a pipe, not a regular file", path)
}
