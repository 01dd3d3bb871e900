package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/train/checkpoint/llamafile"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// exportFlags are the flags of export.
type exportFlags struct {
	from, to, format, dtype, config string
	tokenizers                      []string
	context                         int
	shardMB                         int64
	force, asJSON                   bool
}

func (a *app) exportCmd() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export --from WEIGHTS --to DIR --format hf|llama2c|meta",
		Short: "Write a Llama in a format that other programs read",
		Long: `Write a Llama in a format that other programs read.

WEIGHTS is a checkpoint (or a folder of several or of a run, where the newest good one is used), a Hugging Face folder (config.json and
model.safetensors or shards), a folder with Meta's names (safetensors and params.json), or a .bin file of llama2.c. Formats to write:

  hf       model.safetensors or shards, config.json, generation_config.json: for transformers, vLLM, llama.cpp's converter
  llama2c  version 0 of llama2.c: DIR/model.bin, or the file itself where the path ends with .bin; f32 only
  meta     model.safetensors with Meta's names and order of rows, params.json

For hf and meta the tokenizer in the folder of the weights is copied too, unless --tokenizer names another. DIR appears when it is complete,
or not at all.`,
		Example: `  gotrain export --from runs/llama-finetune --to romeo --format hf --dtype bf16
  gotrain export --from romeo --to romeo.bin --format llama2c
  gotrain export --from stories15M.bin --to stories15M --format hf`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return a.export(ctx, f)
		},
	}
	c.Flags().StringVar(&f.from, "from", "", "`path` of the weights")
	c.Flags().StringVar(&f.to, "to", "", "`path` to write")
	c.Flags().StringVar(&f.format, "format", "", "`hf`, llama2c or meta")
	c.Flags().StringVar(&f.dtype, "dtype", "f32", "type of the stored values: `f32`, bf16 or f16")
	c.Flags().StringVar(&f.config, "config", "", "config.json for weights that have none; a `file` or its folder")
	c.Flags().StringArrayVar(&f.tokenizers, "tokenizer", nil,
		"tokenizer `file` to copy, or a folder of tokenizer files; may be repeated; default: the tokenizer in the folder of the weights")
	c.Flags().IntVar(&f.context, "context", 0, "declare a shorter context of `N` tokens; 0: the model's")
	c.Flags().Int64Var(&f.shardMB, "shard-mb", 0, "largest size in `MB` of a file of format hf; 0: 5000")
	c.Flags().BoolVar(&f.force, "force", false, "replace an earlier export")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print the summary as JSON")
	for _, name := range []string{"from", "to", "format"} {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err) // a programmer's mistake
		}
	}
	return c
}

func (a *app) export(ctx context.Context, f exportFlags) error {
	o := llamafile.Options{
		DType: safetensors.DType(strings.ToUpper(f.dtype)), Shard: f.shardMB * 1e6, Context: f.context, Files: f.tokenizers, Force: f.force,
		Progress: a.progress("exported"),
	}
	if !slices.Contains(llamafile.Formats(), f.format) {
		return launch.WithCode(launch.ExitUsage, fmt.Errorf("--format is %q\nhint: one of %s", f.format, strings.Join(llamafile.Formats(), ", ")))
	}
	if o.DType != safetensors.F32 && o.DType != safetensors.BF16 && o.DType != safetensors.F16 {
		return launch.WithCode(launch.ExitUsage, fmt.Errorf("--dtype is %q\nhint: one of f32, bf16, f16", f.dtype))
	}
	if f.shardMB < 0 || f.shardMB > 1e9 {
		return launch.WithCode(launch.ExitUsage, fmt.Errorf("--shard-mb %d\nhint: from 1 to 1000000000, or 0 for the default", f.shardMB))
	}
	if f.format == llamafile.Llama2C && o.DType != safetensors.F32 {
		return launch.WithCode(launch.ExitUsage, fmt.Errorf("--dtype is %q, but llama2.c stores f32 only", f.dtype))
	}
	for _, path := range f.tokenizers {
		if _, err := os.Stat(path); err != nil {
			return launch.WithCode(launch.ExitNoInput, fmt.Errorf("--tokenizer: %w", err))
		}
	}
	from := findModel(f.from)
	m, dir, err := openLlama(ctx, from, f.config)
	if err != nil {
		return err
	}
	defer m.Close()
	if n := m.Config().Context; f.context < 0 || f.context > n {
		return launch.WithCode(launch.ExitUsage, fmt.Errorf("--context %d\nhint: from 1 to the model's %d, or 0 for the model's", f.context, n))
	}
	// A single file may sit next to unrelated files; llama2.c's format is a single file.
	if st, err := os.Stat(from); err == nil && st.IsDir() && len(o.Files) == 0 && f.format != llamafile.Llama2C {
		o.Files, _ = tokenizer.Files(dir) // having none is fine
	}
	begin := time.Now()
	r, err := llamafile.Export(ctx, m, f.format, f.to, o)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("stopped; nothing was written to %s", f.to)
	case err != nil:
		return launch.WithCode(exportCode(err), err)
	}
	for _, w := range r.Warnings {
		fmt.Fprintln(a.err, "warning:", w)
	}
	if f.asJSON {
		return a.printJSON(r)
	}
	files := "1 file"
	if n := len(r.Files); n > 1 {
		files = fmt.Sprintf("%d files", n)
	}
	_, err = fmt.Fprintf(a.out, "%s: %s as %s, %s parameters in %d tensors, %s, %s in %v\n", r.Path, m.Format(), r.Format,
		amount.Count(r.Params), r.Tensors, r.DType, files+", "+amount.Bytes(r.Bytes), time.Since(begin).Round(10*time.Millisecond))
	return err
}

// exportCode distinguishes a failing disk from a model that the format cannot express.
func exportCode(err error) int {
	var path *os.PathError
	var link *os.LinkError
	var call *os.SyscallError
	if errors.As(err, &path) || errors.As(err, &link) || errors.As(err, &call) || errors.Is(err, llamafile.ErrExists) {
		return launch.ExitStorage
	}
	return launch.ExitTraining
}

// progress prints progress every few seconds; work that ends sooner prints nothing.
func (a *app) progress(what string) func(done, total int64) {
	last := time.Now()
	return func(done, total int64) {
		if now := time.Now(); now.Sub(last) > 3*time.Second {
			last = now
			fmt.Fprintf(a.err, "%s %s of %s (%d %%)\n", what, amount.Bytes(done), amount.Bytes(total), 100*done/max(total, 1))
		}
	}
}
