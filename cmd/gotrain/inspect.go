package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/internal/amount"
)

func (a *app) inspectCmd() *cobra.Command {
	var asJSON, tensors, recipe bool
	c := &cobra.Command{
		Use:   "inspect CHECKPOINT|WEIGHTS",
		Short: "Show the contents of a checkpoint or a file of weights, and verify it",
		Long: `Show the contents of a checkpoint, and verify it: every file is read and compared with its checksum. CHECKPOINT is the folder of one, or a
folder of several or of a run: all are listed, and the newest good one is shown.

WEIGHTS are in another format: a Llama as a Hugging Face folder, a folder with Meta's names, a .bin file of llama2.c, or any safetensors file.
Format, configuration and shapes are checked against each other, then shown.`,
		Example: `  gotrain inspect runs/resnet50/checkpoints
  gotrain inspect runs/resnet50/checkpoints/step-00000090 --tensors
  gotrain inspect runs/resnet50/checkpoints --recipe > again.toml
  gotrain inspect stories15M.bin --tensors`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			at := findModel(args[0])
			if !isCheckpoint(at) {
				return a.inspectWeights(at, asJSON, tensors, recipe)
			}
			in, err := inspect(c.Context(), at)
			if err != nil {
				return err
			}
			switch {
			case recipe:
				_, err = fmt.Fprint(a.out, in.State.Recipe)
			case asJSON:
				err = a.printJSON(in)
			default:
				err = in.print(a.out, tensors)
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	c.Flags().BoolVar(&tensors, "tensors", false, "list every tensor")
	c.Flags().BoolVar(&recipe, "recipe", false, "print the recipe of the training run")
	c.MarkFlagsMutuallyExclusive("json", "tensors", "recipe")
	return c
}

// inspectWeights shows weights that are not a checkpoint.
func (a *app) inspectWeights(path string, asJSON, tensors, recipe bool) error {
	if recipe {
		return launch.WithCode(launch.ExitUsage, fmt.Errorf("%s is not a checkpoint, so it has no recipe", path))
	}
	in, err := inspectWeights(path)
	switch {
	case err != nil:
		return err
	case asJSON:
		return a.printJSON(in)
	}
	return in.print(a.out, tensors)
}

func (in *weightsInspection) print(out io.Writer, tensors bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "weights\t%s\n", in.Path)
	format := in.Format
	if in.Note != "" {
		format += ", " + in.Note
	}
	fmt.Fprintf(w, "format\t%s\n", format)
	if c := in.Config; c != nil {
		printLlama(w, *c, in.Size)
	}
	var types []string
	for _, t := range slices.Sorted(maps.Keys(in.DTypes)) {
		types = append(types, fmt.Sprintf("%d of %s", in.DTypes[t], t))
	}
	fmt.Fprintf(w, "parameters\t%s\n", amount.Count(in.Parameters))
	fmt.Fprintf(w, "tensors\t%s, %s\n", strings.Join(types, ", "), amount.Bytes(in.Bytes))
	w.Flush()
	if tensors {
		fmt.Fprintln(out)
		for _, t := range in.Tensors {
			fmt.Fprintf(w, "  %s\t%s\t%v\n", t.Name, t.DType, t.Shape)
		}
		w.Flush()
	}
	return nil
}

// printLlama prints a configuration.
func printLlama(w io.Writer, c llama.Config, size string) {
	if size != "" {
		fmt.Fprintf(w, "model\t%s\n", size)
	}
	fmt.Fprintf(w, "layers\t%d, width %d, feed-forward %d\n", c.Layers, c.Dim, c.Hidden)
	fmt.Fprintf(w, "heads\t%d of width %d over %d key-value heads\n", c.Heads, c.Head(), c.KVHeads)
	last := "the last layer has separate weights"
	if c.Tied {
		last = "the last layer is the embedding"
	}
	fmt.Fprintf(w, "vocabulary\t%s, %s\n", amount.Count(c.Vocab), last)
	rope := ""
	if s := c.Scaling; s.On() {
		rope = fmt.Sprintf(", scaled by %g from %s", s.Factor, amount.Count(s.Original))
	}
	fmt.Fprintf(w, "context\t%s, rope theta %g%s\n", amount.Count(c.Context), c.Theta, rope)
	fmt.Fprintf(w, "norm eps\t%g\n", c.NormEps)
	fmt.Fprintf(w, "ids\tbegin %d, end %d\n", c.BOS, c.EOS)
}

func (in *inspection) print(out io.Writer, tensors bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(in.Others) > 1 {
		fmt.Fprintln(out, "checkpoints, newest first")
		for _, o := range in.Others {
			state := "complete"
			if o.Error != "" {
				state = "unusable: " + o.Error
			} else if o.Best {
				state += ", the best"
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", o.Name, o.Time.UTC().Format(time.DateTime), amount.Bytes(o.Bytes), state)
		}
		w.Flush()
		fmt.Fprintln(out)
	}
	s := in.State
	fmt.Fprintf(w, "checkpoint\t%s\n", in.Path)
	fmt.Fprintf(w, "written\t%s UTC by gotrain %s\n", s.Time.UTC().Format(time.DateTime), s.Version)
	fmt.Fprintf(w, "place\tstep %d, epoch %d, %s samples seen\n", s.Step, s.Epoch, amount.Count(s.Samples))
	fmt.Fprintf(w, "ranks\t%d, micro-batch %d, accumulation %d\n", s.World, s.MicroBatch, s.Accumulation)
	for _, name := range sorted(s.Metrics) {
		fmt.Fprintf(w, "%s\t%.6g\n", name, s.Metrics[name])
	}
	if s.Network != nil && in.Llama == nil {
		fmt.Fprintf(w, "network\t%s\n", s.Network)
	}
	if c := in.Llama; c != nil {
		printLlama(w, *c, sizeName(*c))
	}
	w.Flush()
	fmt.Fprintln(out, "\nfiles, all checksums match")
	for _, f := range in.Files {
		what := ""
		if len(f.Tensors) > 0 {
			what = fmt.Sprintf("%d tensors, %s elements", len(f.Tensors), amount.Count(f.Elements))
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", f.Name, amount.Bytes(f.Bytes), what)
	}
	w.Flush()
	if tensors {
		for _, f := range in.Files {
			if len(f.Tensors) == 0 {
				continue
			}
			fmt.Fprintf(out, "\n%s\n", f.Name)
			for _, t := range f.Tensors {
				fmt.Fprintf(w, "  %s\t%s\t%v\n", t.Name, t.DType, t.Shape)
			}
			w.Flush()
		}
	}
	return nil
}

func sorted(m map[string]float64) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
