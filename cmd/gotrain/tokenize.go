package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/text"
	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// tokenizeFlags are the flags of tokenize.
type tokenizeFlags struct {
	tokenizer, out, show string
	shardMB              int
	special, asJSON      bool
	pack                 text.PackOptions
}

func (a *app) tokenizeCmd() *cobra.Command {
	f := &tokenizeFlags{}
	c := &cobra.Command{
		Use:   "tokenize --tokenizer PATH --out DIR INPUT...",
		Short: "Convert text to shards of token ids",
		Long: `Convert text to shards of token ids, for runs on text that is too large to tokenise at each start. INPUT is a text file, or a folder, of which
all files are read, at any depth. The shards are in llm.c's format, with a dataset.json; the folder appears when everything is written.

A tokenizer is a SentencePiece .model, a Hugging Face tokenizer.json, a tiktoken rank file, a tok*.bin of llama2.c, a folder with one of
them, or the name of bundled data.

Every file is one document, unless --separator or --json divides it: at "blank" lines, at each "line", or at lines that equal a given text.
--bos and --eos put the tokenizer's special ids around each document; without one of them documents cannot be told apart later. Special
tokens spelled out in the text stay text.

--show prints the tokens of a text and writes nothing.`,
		Example: `  gotrain tokenize --tokenizer tokenizer.model --out shards --bos --separator blank --val-fraction 0.01 books/
  gotrain tokenize --tokenizer tokenizer.json --out shards --eos --json text part-00.jsonl part-01.jsonl
  gotrain tokenize --tokenizer stories260k/tok512.bin --out shards --bos --separator '<|endoftext|>' TinyStories.txt
  gotrain tokenize --tokenizer stories260k/tok512.bin --show "Once upon a time"`,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		Args: func(c *cobra.Command, args []string) error {
			show := c.Flags().Changed("show")
			switch {
			case f.tokenizer == "":
				return errors.New("--tokenizer is missing")
			case show && len(args) > 0:
				return errors.New("--show takes the text as its value; give no inputs")
			case !show && len(args) == 0:
				return errors.New("no inputs")
			case !show && f.out == "":
				return errors.New("--out is missing")
			case f.special && !show:
				return errors.New("--special is for --show only")
			case f.shardMB < 1 || f.shardMB > 8000:
				return fmt.Errorf("--shard-mb %d: from 1 to 8000", f.shardMB)
			case !(f.pack.ValFraction >= 0 && f.pack.ValFraction <= 0.5):
				return fmt.Errorf("--val-fraction %v: from 0 to 0.5", f.pack.ValFraction)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.tokenize(c, f, args) },
	}
	f.add(c)
	return c
}

func (f *tokenizeFlags) add(c *cobra.Command) {
	s := c.Flags()
	s.StringVar(&f.tokenizer, "tokenizer", "", "`PATH` of the tokenizer, a file or folder, or the name of bundled data")
	s.StringVarP(&f.out, "out", "o", "", "write the shards to this new `DIR`")
	s.Float64Var(&f.pack.ValFraction, "val-fraction", 0, "`FRACTION` of the documents for validation, from 0 to 0.5; of a single document, its end")
	s.StringVar(&f.pack.Documents.Separator, "separator", text.ByFile, "document separator: blank, line, or the `TEXT` of a line")
	s.StringVar(&f.pack.Documents.Field, "json", "", "inputs are JSON lines; a document is the string in `FIELD`")
	s.BoolVar(&f.pack.BOS, "bos", false, "begin every document with BOS")
	s.BoolVar(&f.pack.EOS, "eos", false, "end every document with EOS")
	s.IntVar(&f.shardMB, "shard-mb", 200, "size of a shard in `MB` (1048576 bytes)")
	s.IntVar(&f.pack.Workers, "workers", 0, "`N` goroutines; 0: one per core")
	s.BoolVar(&f.pack.Documents.ReplaceInvalid, "replace-invalid", false, "replace invalid UTF-8 with U+FFFD instead of stopping")
	s.BoolVar(&f.pack.Replace, "force", false, "replace existing shards in the folder")
	s.StringVar(&f.show, "show", "", "print the tokens of this `TEXT`, and stop")
	s.BoolVar(&f.special, "special", false, "with --show: encode spelled-out special tokens as such")
	s.BoolVar(&f.asJSON, "summary-json", false, "print the summary as JSON")
	c.MarkFlagsMutuallyExclusive("separator", "json")
	c.MarkFlagsMutuallyExclusive("show", "out")
	separators := cobra.FixedCompletions([]string{"blank\tblank lines", "line\tline ends"}, cobra.ShellCompDirectiveNoFileComp)
	if err := c.RegisterFlagCompletionFunc("separator", separators); err != nil {
		panic(err) // the flag is there
	}
	if err := c.MarkFlagDirname("out"); err != nil {
		panic(err)
	}
}

func (a *app) tokenize(c *cobra.Command, f *tokenizeFlags, inputs []string) error {
	path, err := data.Locate(f.tokenizer)
	if err != nil {
		return launch.WithCode(launch.ExitNoInput, fmt.Errorf("--tokenizer: %w", err))
	}
	tok, err := tokenizer.Open(path)
	if err != nil {
		return launch.WithCode(launch.ExitNoInput, err)
	}
	if c.Flags().Changed("show") {
		return a.showTokens(tok, f)
	}
	f.pack.Tokenizer = tok
	f.pack.ShardBytes = int64(f.shardMB) << 20
	line := progressLine{w: a.rawErr}
	f.pack.Progress = line.print
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM) // so that partial output is removed
	defer stop()
	r, err := text.Pack(ctx, f.out, inputs, f.pack)
	line.clear()
	var input *text.InputError
	switch {
	case err == nil:
	case errors.Is(err, os.ErrExist):
		return launch.WithCode(launch.ExitUsage, err)
	case ctx.Err() != nil:
		return fmt.Errorf("stopped before the end; %s was not written: %w", f.out, err)
	case errors.As(err, &input):
		return launch.WithCode(launch.ExitNoInput, err)
	default:
		return launch.WithCode(launch.ExitStorage, err)
	}
	if f.asJSON {
		return a.printJSON(summaryOf(f.out, r))
	}
	return summaryOf(f.out, r).print(a.out, tok)
}

// progressLine is a line that is rewritten in place on a terminal, and not printed elsewhere.
type progressLine struct {
	w     io.Writer
	shown bool
}

func (p *progressLine) print(s text.Progress) {
	f, ok := p.w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || s.Elapsed <= 0 {
		return
	}
	p.shown = true
	fmt.Fprintf(p.w, "\r\x1b[K%3.0f %%  %d documents  %d tokens  %.1f MB/s", 100*float64(s.Bytes)/max(1, float64(s.Total)), s.Documents, s.Tokens, rate(s))
}

func (p *progressLine) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// rate is MB of text a second.
func rate(p text.Progress) float64 { return float64(p.Bytes) / 1e6 / max(p.Elapsed.Seconds(), 1e-9) }

// tokenSummary is the result of tokenize.
type tokenSummary struct {
	Out           string                 `json:"out"`
	Documents     int64                  `json:"documents"`
	Tokens        int64                  `json:"tokens"`
	Bytes         int64                  `json:"bytes"`
	BytesPerToken float64                `json:"bytes_per_token"`
	Seconds       float64                `json:"seconds"`
	MBPerSecond   float64                `json:"mb_per_second"`
	Splits        map[string]*text.Split `json:"splits"`
}

func summaryOf(out string, r *text.Report) tokenSummary {
	s := tokenSummary{Out: out, Tokens: r.Tokens, Bytes: r.Bytes, Seconds: r.Elapsed.Seconds(), MBPerSecond: rate(r.Progress), Splits: r.Manifest.Splits}
	for _, split := range s.Splits {
		s.Documents += split.Documents
	}
	s.BytesPerToken = float64(r.Bytes) / float64(max(1, r.Tokens))
	return s
}

func (s tokenSummary) print(w io.Writer, tok tokenizer.Tokenizer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s\n", s.Out)
	fmt.Fprintf(t, "  tokenizer\t%s, %d ids, %s\n", tok.Kind(), tok.Vocab(), tok.Fingerprint())
	fmt.Fprintf(t, "  text\t%d bytes, %.2f bytes a token\n", s.Bytes, s.BytesPerToken)
	for _, name := range []string{text.Train, text.Val} {
		if p := s.Splits[name]; p != nil {
			fmt.Fprintf(t, "  %s\t%d documents, %d tokens, %d %s\n", name, p.Documents, p.Tokens, len(p.Shards), plural(len(p.Shards), "shard"))
		}
	}
	fmt.Fprintf(t, "  took\t%v, %.1f MB/s\n", time.Duration(s.Seconds*float64(time.Second)).Round(time.Millisecond), s.MBPerSecond)
	return t.Flush()
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// showTokens prints ids and pieces, and the decoded text if it differs from the input.
func (a *app) showTokens(tok tokenizer.Tokenizer, f *tokenizeFlags) error {
	encode := tok.Encode
	if s, ok := tok.(tokenizer.SpecialEncoder); ok && f.special {
		encode = s.EncodeSpecial
	}
	var ids []int32
	if f.pack.BOS && tok.BOS() >= 0 {
		ids = append(ids, tok.BOS())
	}
	ids = encode(ids, f.show)
	if f.pack.EOS && tok.EOS() >= 0 {
		ids = append(ids, tok.EOS())
	}
	var b strings.Builder
	for _, id := range ids {
		piece := ""
		if p, ok := tok.(tokenizer.Piecer); ok {
			piece = p.Piece(id)
		}
		fmt.Fprintf(&b, "%7d  %q\n", id, piece)
	}
	fmt.Fprintf(&b, "%d tokens, %d bytes\n", len(ids), len(f.show))
	if back := string(tok.Decode(nil, ids)); back != f.show {
		fmt.Fprintf(&b, "decoded: %q\n", back)
	}
	_, err := io.WriteString(a.out, b.String())
	return err
}
