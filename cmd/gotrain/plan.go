package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/recipes/assemble"
	"github.com/gotrain/gotrain/train"
)

func (a *app) planCmd() *cobra.Command {
	var f recipeFlags
	var on networkFlags
	var asJSON, program, parameters bool
	var samples, classes int
	c := &cobra.Command{
		Use:   "plan RECIPE",
		Short: "Show what a run will do and need, without training",
		Long: `Show what a run will do and need, without training: parameters, memory of a rank by kind, floating-point operations, gradient buckets with
their parameters, number of steps, the learning rate over time, and the expected time of a step. It compiles the network for the device of
this machine, so kernels and memory are those of the run; it allocates no memory for weights, so a plan for many ranks fits anywhere.

With --link it also predicts a step of ranks on several machines: it simulates the schedule of buckets that a run executes, with the time of each kernel and
of each collective, and says how much communication the backward pass does not hide, what compression would change, and which buckets would be best. Times of
kernels are estimated from the device's peak, or, with --measured, those of a run: every run writes them to its metrics.jsonl.

A plan needs no data. Without them it assumes data.published_samples and model.classes of the recipe, and says so; --samples and --classes
give other numbers, and the data are then not opened even if they exist.`,
		Example: `  gotrain plan resnet50
  gotrain plan resnet50-imagenet --ranks 64
  gotrain plan resnet50-imagenet --ranks 64 --nodes 8 --link 25gbit,20us
  gotrain plan resnet50-imagenet --ranks 64 --nodes 8 --link 25gbit,20us --measured runs/resnet50-imagenet/metrics.jsonl
  gotrain plan llama2-7b --ranks 64 --nodes 8 --link 100gbit,5us --set log.peak_tflops=300
  gotrain plan resnet50 --samples 50000 --classes 100    # for photographs on another machine
  gotrain plan resnet50 --program              # every kernel, with its memory
  gotrain plan resnet50 --parameters           # every parameter: shape, group, factor on the learning rate, weight decay
  gotrain plan resnet50 --json | jq .memory`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for key, n := range map[string]int{"data.published_samples": samples, "model.classes": classes} {
				if n != 0 {
					f.sets = append(f.sets, fmt.Sprintf("%s=%d", key, n))
				}
			}
			r, err := f.loadOr(args[0], c.InOrStdin())
			if err != nil {
				return err
			}
			a.warn(r.Warnings())
			s, done, err := summarise(c.Context(), r, samples != 0 || classes != 0, &on)
			if err != nil {
				return err
			}
			defer done()
			switch {
			case asJSON:
				return a.printJSON(s)
			case program:
				return s.Program.Write(a.out)
			case parameters:
				return a.printParameters(s.Parameters)
			}
			return a.printPlan(r, s)
		},
	}
	f.add(c)
	on.add(c)
	c.Flags().IntVar(&samples, "samples", 0, "plan for this `number` of training samples, without opening the data")
	c.Flags().IntVar(&classes, "classes", 0, "plan for this `number` of classes, without opening the data")
	c.Flags().BoolVar(&asJSON, "json", false, "print the plan as JSON")
	c.Flags().BoolVar(&program, "program", false, "print the compiled program instead")
	c.Flags().BoolVar(&parameters, "parameters", false, "list the parameters instead, with their groups, factors on the learning rate and weight decays")
	c.MarkFlagsMutuallyExclusive("json", "program", "parameters")
	return c
}

func (a *app) printPlan(r *recipes.Recipe, s *planned) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "recipe\t%s (%s)\n", r.Run.Name, r.Source())
	fmt.Fprintf(w, "device\t%s\n", s.Device)
	if s.Assumed != nil {
		fmt.Fprintf(w, "data\t%s\n", s.Assumed.Why)
		fmt.Fprintf(w, "assumed\t%s\n", strings.Join(s.Assumed.Counts, ", "))
	}
	if loss := assemble.Loss(r); loss != "" {
		fmt.Fprintf(w, "loss\t%s\n", loss)
	}
	if augmented := assemble.Augmentation(r); augmented != "" {
		fmt.Fprintf(w, "augmentation\t%s\n", augmented)
	}
	for _, row := range assemble.Learning(r) {
		fmt.Fprintf(w, "%s\t%s\n", row.What, row.Text)
	}
	fmt.Fprintf(w, "parameters\t%s, %s trained; %s elements of running statistics\n", amount.Count(s.Params), amount.Count(s.Trained),
		amount.Count(s.States))
	fmt.Fprintf(w, "batch\t%s = %d a rank x %d accumulated x %d ranks\n", amount.Count(s.GlobalBatch), r.Train.Batch, r.Train.Accumulate, s.World)
	if s.StepsPerPass > 0 {
		fmt.Fprintf(w, "steps\t%s, %s an epoch\n", amount.Count(s.Steps), amount.Count(s.StepsPerPass))
	} else {
		fmt.Fprintf(w, "steps\t%s; the steps of an epoch are not known\n", amount.Count(s.Steps))
	}
	fmt.Fprintf(w, "arithmetic\t%s a micro-batch: %s forward, %s backward\n", amount.FLOP(s.ForwardFLOP+s.BackwardFLOP), amount.FLOP(s.ForwardFLOP),
		amount.FLOP(s.BackwardFLOP))
	if s.Convolutions != "" {
		fmt.Fprintf(w, "convolutions\t%s\n", s.Convolutions)
	}
	if s.Predicted > 0 {
		fmt.Fprintf(w, "step\tabout %v, %.1f %s/s, %v in all (without loading, evaluation and exposed communication)\n", round(s.Predicted),
			float64(s.GlobalBatch*s.PerSample)/s.Predicted.Seconds(), s.Items, long(s.Predicted.Seconds()*float64(s.Steps)))
		if s.Traffic > 0 {
			travel := r.Comm.Compress
			if travel == "none" {
				travel = "f32"
			}
			way := "and as much received by each rank in a step (" + travel + ")"
			if s.Between {
				way = "to other hosts " + way + ", after sums in float32 inside each host"
			}
			fmt.Fprintf(w, "traffic\t%s sent %s\n", amount.Bytes(s.Traffic), way)
		}
	} else {
		fmt.Fprintln(w, "step\t- (the peak of the device is not known)")
	}
	if c := s.Recompute; c != nil {
		fmt.Fprintf(w, "recompute\t%s\n", recomputed(c, s))
	}
	if s.Limit != nil {
		fmt.Fprintf(w, "memory limit\t%s\n", memoryLimit(s))
	}
	w.Flush()

	fmt.Fprintln(a.out, "\nmemory of a rank")
	for _, m := range s.Memory {
		if !m.Shared {
			fmt.Fprintf(w, "  %s\t%s\n", m.What, amount.Bytes(m.Bytes))
		}
	}
	fmt.Fprintf(w, "  total\t%s\n", amount.Bytes(s.Total()))
	for _, m := range s.Memory {
		if m.Shared {
			fmt.Fprintf(w, "  in addition, mapped: %s\t%s\n", m.What, amount.Bytes(m.Bytes))
		}
	}
	w.Flush()

	if s.Network != nil {
		a.printNetwork(w, s.Network)
		w.Flush()
	}

	fmt.Fprintf(a.out, "\nbuckets, in order of reduction\n")
	printBuckets(w, s.Buckets)
	w.Flush()

	fmt.Fprintln(a.out, "\nwhere the time goes, by kind of op")
	for _, k := range s.Kinds {
		fmt.Fprintf(w, "  %s\t%d\t%s\t%s\n", k.Kind, k.Count, amount.FLOP(k.FLOP), amount.Bytes(k.Bytes))
	}
	w.Flush()

	fmt.Fprintln(a.out, "\nlearning rate")
	printLR(w, s)
	return w.Flush()
}

func printLR(w io.Writer, s *planned) {
	top := 0.0
	for _, p := range s.LR {
		top = max(top, p.LR)
	}
	for _, p := range s.LR {
		fmt.Fprintf(w, "  step %d\t%.5g\t%s\n", p.Step, p.LR, bar(p.LR, top))
	}
}

// With more buckets than these sum to, only the first and the last ones are printed; --json has all.
const bucketsShown, bucketsAtEnd = 16, 4

func printBuckets(w io.Writer, all []train.BucketItem) {
	skipped, bytes := 0, int64(0)
	for i, b := range all {
		if len(all) > bucketsShown+bucketsAtEnd && i >= bucketsShown && i < len(all)-bucketsAtEnd {
			skipped, bytes = skipped+1, bytes+b.Bytes
			continue
		}
		if skipped > 0 {
			fmt.Fprintf(w, "  …\t%s\tin %d more\t--json lists all\n", amount.Bytes(bytes), skipped)
			skipped = 0
		}
		fmt.Fprintf(w, "  %d\t%s\t%d parameters\t%s\n", i, amount.Bytes(b.Bytes), len(b.Params), span(b.Params))
	}
}

// long formats a number of seconds that may exceed a Duration.
func long(seconds float64) string {
	switch days := seconds / 86400; {
	case days > 3650:
		return fmt.Sprintf("%.0f years", days/365)
	case days > 10:
		return fmt.Sprintf("%.0f days", days)
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// round drops the meaningless digits of a prediction.
func round(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Minute:
		return d.Round(time.Minute)
	case d > 10*time.Second:
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// span names the parameters of a bucket: the first and the last one.
func span(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	return names[0] + " … " + names[len(names)-1]
}

// bar draws a number as a bar of up to 40 columns.
func bar(x, top float64) string {
	if !(top > 0) {
		return ""
	}
	return strings.Repeat("▪", int(40*x/top+0.5))
}

// recomputed compares keeping activations with computing them again.
func recomputed(c *train.Choice, s *planned) string {
	part := 100 * float64(c.ExtraFLOP) / float64(s.ForwardFLOP+s.BackwardFLOP)
	if c.On {
		return fmt.Sprintf("layer: activations take %s; with none %s and %.0f %% less arithmetic", amount.Bytes(c.Again), amount.Bytes(c.Kept), part)
	}
	return fmt.Sprintf("none: activations take %s; with layer %s and %.0f %% more arithmetic", amount.Bytes(c.Kept), amount.Bytes(c.Again), part)
}

// memoryLimit says what train.memory_limit_mb leads to: what is recomputed, what that saves, what it costs.
func memoryLimit(s *planned) string {
	l := s.Limit
	limit := fmt.Sprintf("%.0f MiB: ", float64(l.Bytes)/(1<<20))
	if len(l.Made) == 0 {
		return limit + "nothing has to be recomputed"
	}
	flops := s.ForwardFLOP + s.BackwardFLOP
	text := fmt.Sprintf("%s%v; that is %s, %.2f %% of the arithmetic", limit, l, amount.FLOP(l.ExtraFLOP), 100*float64(l.ExtraFLOP)/float64(flops))
	if l.ExtraTime > 0 && s.Predicted > 0 {
		text += fmt.Sprintf(", and about %v of a step (%.1f %%)", round(time.Duration(l.ExtraTime*1e9)), 100*l.ExtraTime/s.Predicted.Seconds())
	}
	return text
}
