package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) inspectCmd() *cobra.Command {
	var asJSON, tensors, recipe bool
	c := &cobra.Command{
		Use:   "inspect CHECKPOINT",
		Short: "Show what a checkpoint holds, and whether it is sound",
		Long: `Show what a checkpoint holds, and whether it is sound: every file is read and compared with its checksum. CHECKPOINT is the folder of one, or a
folder of several, which are listed and of which the newest good one is shown.`,
		Example: `  gotrain inspect runs/resnet50/checkpoints
  gotrain inspect runs/resnet50/checkpoints/step-00000090 --tensors
  gotrain inspect runs/resnet50/checkpoints --recipe > again.toml`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in, err := inspect(c.Context(), args[0])
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
	c.Flags().BoolVar(&recipe, "recipe", false, "print the recipe that it was trained with")
	c.MarkFlagsMutuallyExclusive("json", "tensors", "recipe")
	return c
}

func (in *inspection) print(out io.Writer, tensors bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(in.Others) > 1 {
		fmt.Fprintln(out, "checkpoints, newest first")
		for _, o := range in.Others {
			state := "complete"
			if o.Error != "" {
				state = "unusable: " + o.Error
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", o.Name, o.Time.UTC().Format(time.DateTime), mib(o.Bytes), state)
		}
		w.Flush()
		fmt.Fprintln(out)
	}
	s := in.State
	fmt.Fprintf(w, "checkpoint\t%s\n", in.Path)
	fmt.Fprintf(w, "written\t%s UTC by gotrain %s\n", s.Time.UTC().Format(time.DateTime), s.Version)
	fmt.Fprintf(w, "place\tstep %d, epoch %d, %s samples seen\n", s.Step, s.Epoch, thousands(s.Samples))
	fmt.Fprintf(w, "ranks\t%d, micro-batch %d, accumulation %d\n", s.World, s.MicroBatch, s.Accumulation)
	for _, name := range sorted(s.Metrics) {
		fmt.Fprintf(w, "%s\t%.6g\n", name, s.Metrics[name])
	}
	w.Flush()
	fmt.Fprintln(out, "\nfiles, all as their checksums say")
	for _, f := range in.Files {
		what := ""
		if len(f.Tensors) > 0 {
			what = fmt.Sprintf("%d tensors, %s elements", len(f.Tensors), thousands(f.Elements))
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", f.Name, mib(f.Bytes), what)
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
