package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/llamafile"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/text/tokenizer"
	"github.com/gotrain/gotrain/train/generate"

	"github.com/gotrain/gotrain/train/foreign"
)

// generateFlags are the flags of generate.
type generateFlags struct {
	prompts           []string
	file, tokenizer   string
	config            string
	limit, room       int
	dtype, device     string
	threads           int
	sampling          generate.Sampling
	noBOS, asJSON     bool
	special, noPrompt bool
	profile           bool
}

func (a *app) generateCmd() *cobra.Command {
	var f generateFlags
	c := &cobra.Command{
		Use:   "generate MODEL",
		Short: "Generate text with a Llama",
		Long: `Generate text with a Llama. MODEL is a checkpoint, a folder of several (the newest good one is used) or the folder of a run; a Hugging Face
folder; one with Meta's names; or a .bin of llama2.c. The tokenizer is the one next to the weights, unless --tokenizer names another.

With one prompt the text appears as it is generated. Several prompts (repeat --prompt, or --prompts with a file of one per line, - for
standard input) are generated together, at hardly more than the cost of one, and printed one after the other. The text goes to standard
output, everything else to standard error. On a terminal, control characters in the text appear as escapes such as \x1b; a file or a pipe
gets the raw bytes.

Tokens are sampled unless --temperature is 0; the same seed gives the same text.`,
		Example: `  gotrain generate runs/llama-finetune --prompt "ROMEO:"
  gotrain generate stories260k --prompt "Once upon a time" --temperature 0 --tokens 200
  gotrain generate ~/models/Llama-3.2-1B --dtype bf16 --prompt "The capital of France is" --top-k 50
  gotrain generate model.bin --tokenizer tokenizer.bin --prompts prompts.txt --json | jq -r .text`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
			defer stop()
			return a.generate(ctx, args[0], &f, c.InOrStdin())
		},
	}
	fl := c.Flags()
	fl.StringArrayVarP(&f.prompts, "prompt", "p", nil, "`text` to continue; may be repeated; none: start a new text")
	fl.StringVar(&f.file, "prompts", "", "`file` of prompts, one per line; - is standard input")
	fl.IntVarP(&f.limit, "tokens", "n", 256, "maximum number of tokens to generate")
	fl.Float64VarP(&f.sampling.Temperature, "temperature", "t", 0.8, "0: always the likeliest token; higher: more random")
	fl.IntVar(&f.sampling.TopK, "top-k", 0, "sample from the k likeliest tokens only; 0: from all")
	fl.Float64Var(&f.sampling.TopP, "top-p", 0.95, "sample from the likeliest tokens whose probabilities add up to this; 1: from all")
	fl.Uint64Var(&f.sampling.Seed, "seed", 1, "seed of the sampling")
	fl.StringVar(&f.tokenizer, "tokenizer", "", "tokenizer `file` or folder, or the name of bundled data; empty: the one next to the weights")
	fl.StringVar(&f.config, "config", "", "`file` that describes the model (config.json, params.json), for weights without one")
	fl.BoolVar(&f.special, "special", false, "encode special tokens in prompts, such as <|eot_id|>, as those tokens")
	fl.BoolVar(&f.noBOS, "no-bos", false, "do not put the begin-of-text token before a prompt")
	fl.BoolVar(&f.noPrompt, "no-echo", false, "do not print the prompt")
	fl.IntVar(&f.room, "room", 0, "tokens to reserve for a text, prompt included; 0: as many as requested, up to the model's context")
	fl.StringVar(&f.dtype, "dtype", "f32", "type of weights and activations: f32, or bf16 or f16, which read half as much memory per token")
	fl.StringVar(&f.device, "device", "auto", "auto, cpu or ref")
	fl.IntVar(&f.threads, "threads", 0, "compute threads; 0: all cores")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object per prompt, with the text, the tokens and the speed")
	fl.BoolVar(&f.profile, "profile", false, "time every kernel, and say on standard error where the time of a token goes")
	c.MarkFlagsMutuallyExclusive("prompt", "prompts")
	return c
}

// findModel resolves the folder of a run to its checkpoints, the file best or latest to the checkpoint that it names, and the name of bundled weights to
// their path.
func findModel(path string) string {
	if _, err := os.Stat(path); err != nil {
		if at, err := data.Locate(path); err == nil {
			return at
		}
	}
	at, _ := checkpoint.Resolve(path)
	return at
}

func (a *app) generate(ctx context.Context, path string, f *generateFlags, stdin io.Reader) error {
	begin := time.Now()
	path = findModel(path)
	m, dir, err := openLlama(ctx, path, f.config)
	if err != nil {
		return err
	}
	defer m.Close()
	t, err := f.openTokenizer(dir, m)
	if err != nil {
		return err
	}
	texts, err := f.texts(stdin)
	if err != nil {
		return err
	}
	prompts, err := f.encode(t, texts)
	if err != nil {
		return err
	}
	g, err := f.open(m, prompts)
	if err != nil {
		return err
	}
	defer g.Close()
	info := g.Info()
	fmt.Fprintf(a.err, "%s, %s parameters in %s on %s (%s), ready in %v\n",
		m.Format(), amount.Count(m.Config().Params()), f.dtype, info.Name, info.Detail, time.Since(begin).Round(time.Millisecond))

	w := writer{f: f, t: t, texts: texts, out: bufio.NewWriter(a.text()), live: len(prompts) == 1 && !f.asJSON}
	stats, err := w.write(ctx, g, prompts)
	if e := w.out.Flush(); err == nil {
		err = e
	}
	if errors.Is(err, context.Canceled) {
		err = launch.WithCode(launch.ExitNotResumable, errors.New("stopped on request"))
	}
	if stats.Written > 0 {
		fmt.Fprintf(a.err, "%d tokens read in %v, %d written at %.1f tok/s",
			stats.Prompt, stats.Reading.Round(time.Millisecond), stats.Written, stats.PerSecond())
		if s := stats.Writing.Seconds(); s > 0 && stats.Steps > 0 {
			fmt.Fprintf(a.err, ", weights read at %.1f GB/s", float64(g.WeightBytes())*float64(stats.Steps)/s/1e9)
		}
		fmt.Fprintln(a.err)
	}
	if e := a.printTokenTime(stats); err == nil {
		err = e
	}
	return err
}

// openTokenizer opens the tokenizer and checks that it belongs to the model.
func (f *generateFlags) openTokenizer(dir string, m llamafile.Model) (tokenizer.Tokenizer, error) {
	at := dir
	if f.tokenizer != "" {
		var err error
		if at, err = data.Locate(f.tokenizer); err != nil {
			return nil, launch.WithCode(launch.ExitNoInput, fmt.Errorf("--tokenizer: %w", err))
		}
	}
	t, err := tokenizer.Open(at)
	if err != nil {
		if f.tokenizer == "" {
			err = fmt.Errorf("%w\nhint: name the tokenizer with --tokenizer", err)
		}
		return nil, launch.WithCode(launch.ExitNoInput, err)
	}
	if v := m.Config().Vocab; t.Vocab() > v {
		return nil, launch.WithCode(launch.ExitNoInput, fmt.Errorf("the tokenizer at %s has %d tokens, but the model's vocabulary has %d\nhint: "+
			"name the model's tokenizer with --tokenizer", at, t.Vocab(), v))
	}
	return t, nil
}

// text returns where generated text goes. A model may generate anything, including terminal control sequences: a terminal gets control characters as
// escapes, a file or a pipe gets the raw bytes.
func (a *app) text() io.Writer {
	if f, ok := a.rawOut.(*os.File); ok && !term.IsTerminal(int(f.Fd())) {
		return a.result
	}
	return a.out
}

// texts are the prompts as text.
func (f *generateFlags) texts(stdin io.Reader) ([]string, error) {
	if f.file == "" {
		if len(f.prompts) == 0 {
			return []string{""}, nil
		}
		return f.prompts, nil
	}
	in, name := stdin, "standard input"
	if f.file != "-" {
		name = f.file
		r, err := foreign.Open(f.file)
		if err != nil {
			return nil, launch.WithCode(launch.ExitNoInput, err)
		}
		defer r.Close()
		in = r
	}
	var out []string
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if s := strings.TrimRight(lines.Text(), "\r"); s != "" {
			out = append(out, s)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, launch.WithCode(launch.ExitNoInput, fmt.Errorf("%s: %w", name, err))
	}
	if len(out) == 0 {
		return nil, launch.WithCode(launch.ExitNoInput, fmt.Errorf("%s has no prompts\nhint: put one on each line", name))
	}
	return out, nil
}

func (f *generateFlags) encode(t tokenizer.Tokenizer, texts []string) ([][]int32, error) {
	var out [][]int32
	for i, s := range texts {
		var ids []int32
		if !f.noBOS && t.BOS() >= 0 {
			ids = append(ids, t.BOS())
		}
		if sp, ok := t.(tokenizer.SpecialEncoder); ok && f.special {
			ids = sp.EncodeSpecial(ids, s)
		} else {
			ids = t.Encode(ids, s)
		}
		if len(ids) == 0 {
			return nil, launch.WithCode(launch.ExitUsage,
				fmt.Errorf("prompt %d is empty, and the tokenizer has no begin-of-text token\nhint: give a prompt", i+1))
		}
		out = append(out, ids)
	}
	return out, nil
}

func (f *generateFlags) open(m llamafile.Model, prompts [][]int32) (*generate.Generator, error) {
	dtype, err := npu.ParseDType(f.dtype)
	if err != nil || !slices.Contains([]npu.DType{npu.F32, npu.BF16, npu.F16}, dtype) {
		return nil, launch.WithCode(launch.ExitUsage, fmt.Errorf("--dtype %s: f32, bf16 or f16", f.dtype))
	}
	if !slices.Contains([]string{"auto", "npu", "cpu", "ref"}, f.device) {
		return nil, launch.WithCode(launch.ExitUsage, fmt.Errorf("--device %s: auto, npu, cpu or ref", f.device))
	}
	if err := f.sampling.Check(); err != nil {
		return nil, launch.WithCode(launch.ExitUsage, err)
	}
	if f.limit < 1 {
		return nil, launch.WithCode(launch.ExitUsage, fmt.Errorf("--tokens %d: at least 1", f.limit))
	}
	if f.threads < 0 {
		return nil, launch.WithCode(launch.ExitUsage, fmt.Errorf("--threads %d: at least 1, or 0 for all cores", f.threads))
	}
	room, err := f.roomFor(prompts, m.Config().Context)
	if err != nil {
		return nil, launch.WithCode(launch.ExitUsage, err)
	}
	o := generate.Options{Threads: f.threads, Compute: dtype, Texts: len(prompts), Room: room, Profile: f.profile}
	if place, err := launch.Place(launch.Identity{LocalWorld: 1}, os.LookupEnv); o.Threads == 0 && err == nil && place.Why != "" {
		o.Threads = place.Threads // a device counts cores, not quotas
		fmt.Fprintln(os.Stderr, place.Why)
	}
	if f.device != "auto" {
		o.Device = f.device
	}
	g, err := generate.New(m, m.Config(), o)
	return g, launch.WithCode(launch.ExitUnavailable, err)
}

// roomFor returns the number of tokens that a text may have, prompt included.
func (f *generateFlags) roomFor(prompts [][]int32, context int) (int, error) {
	longest, which := 0, 0
	for i, p := range prompts {
		if len(p) > longest {
			longest, which = len(p), i
		}
	}
	room := f.room
	if room == 0 {
		room = min(longest+f.limit, context)
	}
	switch {
	case f.room < 0:
		return 0, fmt.Errorf("--room %d: at least 1, or 0 for as many as requested", f.room)
	case room > context:
		return 0, fmt.Errorf("--room %d is more than the context of the model, %d", room, context)
	case longest > context:
		return 0, fmt.Errorf("prompt %d has %d tokens, the context of the model is %d\nhint: shorten the prompt", which+1, longest, context)
	case longest > room:
		return 0, fmt.Errorf("prompt %d has %d tokens, which is more than --room %d", which+1, longest, room)
	}
	return room, nil
}

// writer prints texts: a single one as it is generated, several when all are complete.
type writer struct {
	f     *generateFlags
	t     tokenizer.Tokenizer
	texts []string
	out   *bufio.Writer
	live  bool
}

func (w *writer) write(ctx context.Context, g *generate.Generator, prompts [][]int32) (generate.Stats, error) {
	ids := make([][]int32, len(prompts))
	stream := tokenizer.NewStream(w.t)
	say := func(b []byte) { w.out.Write(b) }
	if w.live { // the stream needs the prompt, because decoding depends on it
		var echo []byte
		for _, id := range prompts[0] {
			echo = stream.Push(echo, id)
		}
		if !w.f.noPrompt {
			say(echo)
		}
		w.out.Flush()
	}
	stats, err := g.Run(ctx, prompts, w.f.sampling, w.f.limit, func(i int, id int32) {
		ids[i] = append(ids[i], id)
		if w.live {
			if b := stream.Push(nil, id); len(b) > 0 {
				say(b)
				w.out.Flush() // its error is sticky and returned at the end
			}
		}
	})
	if w.live {
		say(append(stream.Flush(nil), '\n'))
		return stats, err
	}
	for i := range ids {
		if e := w.print(i, prompts[i], ids[i], stats); e != nil {
			return stats, errors.Join(err, e)
		}
	}
	return stats, err
}

// print writes one of several texts.
func (w *writer) print(i int, prompt, ids []int32, stats generate.Stats) error {
	whole := string(w.t.Decode(nil, append(append([]int32{}, prompt...), ids...)))
	before := string(w.t.Decode(nil, prompt))
	after := strings.TrimPrefix(whole, before)
	if w.f.asJSON {
		a := &app{out: w.out}
		return a.printLine(map[string]any{
			"prompt": w.texts[i], "text": after, "prompt_tokens": prompt, "tokens": ids, "tokens_per_second": stats.PerSecond(),
		})
	}
	if w.f.noPrompt {
		whole = after
	}
	if i > 0 {
		fmt.Fprintln(w.out, "---")
	}
	_, err := fmt.Fprintln(w.out, whole)
	return err
}
