package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph/models"
	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/recipes/assemble"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/llamafile"
	"github.com/gotrain/gotrain/train/foreign"
	"github.com/gotrain/gotrain/train/predict"
)

// predictFlags are the flags of predict.
type predictFlags struct {
	top, batch, threads, workers int
	device, dtype, conv          string
	asJSON                       bool
}

func (a *app) predictCmd() *cobra.Command {
	var f predictFlags
	c := &cobra.Command{
		Use:   "predict CHECKPOINT FILE|FOLDER|-...",
		Short: "Classify pictures with a trained network",
		Long: `Classify pictures with a trained network. CHECKPOINT is the folder of one, or a folder of several or of a run, where the newest good one is used.
It is enough: network, classes, size and normalisation of pictures and the compute type are in it. The recipe and the data are not needed.

FILE is a JPEG, PNG or GIF. Of a FOLDER all pictures in it and below are taken, in alphabetical order, by the ending of their names; - reads paths from
standard input, one a line. Pictures are prepared as for an evaluation, decoded on all cores, and computed in batches. Results appear in the order
of the pictures, as soon as they are known.

A file that cannot be read is named and the rest goes on; the exit code is then 66. Long work reports its progress on standard error.`,
		Example: `  gotrain predict runs/resnet50 photo.jpg
  gotrain predict runs/resnet50/checkpoints/best photo.jpg                    # the one that checkpoint.keep_best has kept
  gotrain predict runs/resnet50/checkpoints/step-00000090 photographs --top 1
  find photographs -newer last | gotrain predict runs/resnet50 - --json | jq -r .classes[0].class`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return a.predict(ctx, args[0], args[1:], &f, c.InOrStdin())
		},
	}
	fl := c.Flags()
	fl.IntVar(&f.top, "top", 5, "how many of the likeliest classes to print")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object a picture, with path and classes, or path and error")
	fl.IntVar(&f.batch, "batch", 32, "largest number of pictures to compute together")
	fl.StringVar(&f.dtype, "dtype", "", "`type` of activations: f32, bf16 or f16; empty: that of the training")
	fl.StringVar(&f.device, "device", "auto", "auto, npu, cpu or ref")
	fl.StringVar(&f.conv, "conv-algorithm", train.AutoConv, "`how` convolutions are computed: auto, direct or winograd; auto: as in the training, otherwise the "+
		"fastest, measured once a machine")
	fl.IntVar(&f.threads, "threads", 0, "compute threads; 0: all cores")
	fl.IntVar(&f.workers, "workers", 0, "pictures to decode at the same time; 0: as many as there are cores")
	a.completeWords(c, "dtype", "f32", "bf16", "f16")
	a.completeWords(c, "device", "auto", "npu", "cpu", "ref")
	a.completeWords(c, "conv-algorithm", train.AutoConv, train.DirectConv, train.WinogradConv)
	return c
}

// completeWords offers the values of a flag.
func (a *app) completeWords(c *cobra.Command, flag string, words ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // a programmer's mistake
	}
}

func (a *app) predict(ctx context.Context, path string, args []string, f *predictFlags, stdin io.Reader) error {
	opts, err := f.options()
	if err != nil {
		return launch.WithCode(launch.ExitUsage, err)
	}
	m, err := openPredictor(ctx, findModel(path), opts)
	if err != nil {
		if i := slices.IndexFunc(args, holdsCheckpoint); i >= 0 && !holdsCheckpoint(path) {
			err = fmt.Errorf("%w\nhint: the checkpoint comes first, then the pictures: gotrain predict %s %s", err, args[i], path)
		}
		return err
	}
	defer m.Close()
	if f.top > m.Outputs() {
		f.top = m.Outputs()
	}
	p := &predictions{a: a, f: f, begin: time.Now(), last: time.Now()}
	err = p.all(ctx, m, files(args, stdin))
	if p.done > p.bad {
		took := time.Since(p.begin)
		fmt.Fprintf(a.err, "%s in %v on %s (%s), %.1f a second\n", p.counted(), took.Round(time.Millisecond), m.Info().Name, m.Compute(),
			float64(p.done)/took.Seconds())
	}
	switch {
	case ctx.Err() != nil:
		return launch.WithCode(launch.ExitNotResumable, fmt.Errorf("stopped on request after %s", p.counted()))
	case err != nil:
		return err
	case p.bad > 0:
		return launch.WithCode(launch.ExitNoInput, fmt.Errorf("%s of %s could not be read", amount.Count(p.bad), p.counted()))
	case p.done == 0:
		return launch.WithCode(launch.ExitNoInput, errors.New("there are no pictures\nhint: name files, folders, or - with a list on standard input"))
	}
	return m.Close()
}

func (f *predictFlags) options() (opts []predict.Option, err error) {
	o := []predict.Option{predict.WithBatch(f.batch), predict.WithWorkers(f.workers)}
	switch {
	case f.top < 1:
		return nil, fmt.Errorf("--top %d: at least 1", f.top)
	case f.batch < 1 || f.batch > 1<<14:
		return nil, fmt.Errorf("--batch %d: from 1 to %d", f.batch, 1<<14)
	case f.threads < 0 || f.workers < 0:
		return nil, errors.New("--threads and --workers: at least 1, or 0 for all cores")
	}
	switch f.device {
	case "auto":
		o = append(o, predict.WithDevice("", f.threads, nil))
	case "npu", "cpu", "ref":
		o = append(o, predict.WithDevice(f.device, f.threads, nil))
	default:
		return nil, fmt.Errorf("--device %s: auto, npu, cpu or ref", f.device)
	}
	switch f.dtype {
	case "":
	case "f32", "bf16", "f16":
		t, err := npu.ParseDType(f.dtype)
		if err != nil {
			return nil, err
		}
		o = append(o, predict.WithCompute(t))
	default:
		return nil, fmt.Errorf("--dtype %s: f32, bf16 or f16", f.dtype)
	}
	switch f.conv {
	case train.AutoConv, train.DirectConv, train.WinogradConv:
		o = append(o, predict.WithConvAlgorithm(f.conv))
	default:
		return nil, fmt.Errorf("--conv-algorithm %s: auto, direct or winograd", f.conv)
	}
	return o, nil
}

// openPredictor opens a checkpoint. One that an older version wrote is described by its recipe.
func openPredictor(ctx context.Context, path string, opts []predict.Option) (*predict.Model, error) {
	m, err := predict.Open(path, opts...)
	if err == nil || !errors.Is(err, predict.ErrNotDescribed) {
		return m, refused(path, err)
	}
	if !isCheckpoint(path) {
		if l, other := llamafile.Open(path); other == nil {
			l.Close()
			_, err = models.Open("llama", nil)
			return nil, refused(path, err)
		}
		return nil, launch.WithCode(launch.ExitNoInput, fmt.Errorf("%s is not a checkpoint of gotrain: it has weights, but neither network nor classes\n"+
			"hint: fine-tune from it (model.init_from) and predict with the checkpoint, or describe the network in a program (package train/predict)", path))
	}
	c, err := load(ctx, path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	n, err := networkOfRecipe(c)
	if err != nil {
		return nil, launch.WithCode(launch.ExitNoInput, fmt.Errorf("%s: an older version of gotrain wrote it, without a description of its network: %w", c.Path, err))
	}
	m, err = predict.Open(c.Path, append(opts, predict.WithNetwork(*n))...)
	return m, refused(path, err)
}

// refused gives an error of Open its exit code.
func refused(path string, err error) error {
	if errors.Is(err, models.ErrNoPredictions) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		err = absent(path, err)
	}
	if err != nil && launch.ExitCode(err) == launch.ExitTraining {
		return launch.WithCode(launch.ExitNoInput, err)
	}
	return err
}

// networkOfRecipe describes the network by the recipe in a checkpoint.
func networkOfRecipe(c *checkpoint.Checkpoint) (*checkpoint.Network, error) {
	if c.State.Recipe == "" {
		return nil, errors.New("nor does it hold a recipe\nhint: open it in the program that trained it (package train/predict)")
	}
	r, err := recipes.Decode(c.State.Recipe, "recipe of "+c.Path)
	if err != nil {
		return nil, err
	}
	classes := r.Model.Classes
	if classes == 0 {
		classes = len(c.State.Classes)
	}
	return assemble.Network(r, classes)
}

// predictions prints results and counts them.
type predictions struct {
	a           *app
	f           *predictFlags
	begin, last time.Time
	done, bad   int
}

func (p *predictions) counted() string {
	if p.done == 1 {
		return "1 picture"
	}
	return amount.Count(p.done) + " pictures"
}

// answer is what became of one picture.
type answer struct {
	path string
	res  predict.Result
	err  error // of the call
}

// all predicts the pictures of a list and prints the results in its order. As many are on their way as the model has room for.
func (p *predictions) all(ctx context.Context, m *predict.Model, list func(func(string, error) bool)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queue := make(chan chan answer, 4*p.f.batch)
	go func() {
		defer close(queue)
		for path, bad := range list {
			one := make(chan answer, 1)
			select {
			case queue <- one:
			case <-ctx.Done():
				return
			}
			if bad != nil {
				one <- answer{path: path, res: predict.Result{Err: bad}}
				continue
			}
			go func() {
				res, err := m.Predict(ctx, predict.File(path))
				if err != nil {
					res = make([]predict.Result, 1)
				}
				one <- answer{path, res[0], err}
			}()
		}
	}()
	for { // without waiting for the list, which may be a standard input that is silent
		select {
		case one, ok := <-queue:
			if !ok {
				return nil
			}
			if err := p.print(<-one); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// jsonPrediction is a line of --json.
type jsonPrediction struct {
	Path    string          `json:"path"`
	Classes []predict.Class `json:"classes,omitempty"`
	Error   string          `json:"error,omitempty"`
}

func (p *predictions) print(x answer) error {
	if x.err != nil {
		return x.err
	}
	p.done++
	if now := time.Now(); now.Sub(p.last) > 3*time.Second {
		p.last = now
		fmt.Fprintf(p.a.err, "%s, %.1f a second\n", p.counted(), float64(p.done)/now.Sub(p.begin).Seconds())
	}
	line := jsonPrediction{Path: x.path, Classes: x.res.Top(p.f.top)}
	if x.res.Err != nil {
		p.bad++
		line.Error = reason(x.path, x.res.Err)
		fmt.Fprintf(p.a.err, "%s: %s\n", foreign.Line(x.path), line.Error)
	}
	if p.f.asJSON {
		return p.a.printLine(line)
	}
	if x.res.Err != nil {
		return nil
	}
	var b strings.Builder
	for i, c := range line.Classes {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %.2f %%", c.Name, 100*c.Probability)
	}
	_, err := fmt.Fprintf(p.a.out, "%s: %s\n", foreign.Line(x.path), b.String())
	return err
}

// holdsCheckpoint reports whether a path leads to a checkpoint.
func holdsCheckpoint(path string) bool {
	at, single := checkpoint.Resolve(path)
	list, err := checkpoint.New(checkpoint.OS{}, at, 0).List(context.Background())
	return single || err == nil && len(list) > 0
}

// reason is what an error says besides the path.
func reason(path string, err error) string {
	if p := (*fs.PathError)(nil); errors.As(err, &p) && p.Path == path && err == error(p) {
		return p.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), path+": ")
}
