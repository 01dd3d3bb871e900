package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/foreign"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, launch.NewStream(os.Stderr)))
}

// run is the whole program: it prints an error once, at the very end, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	res := &result{w: stdout}
	app := &app{out: foreign.Writer(res), err: foreign.Writer(stderr), result: res, rawOut: stdout, rawErr: stderr}
	root := app.root()
	if len(args) > 0 && benchFor(args[0]) != "" { // users know the name from elsewhere
		fmt.Fprintf(app.err, "gotrain: there is no command %s\nhint: gotrain bench %s measures it, with the same options\n", args[0], benchFor(args[0]))
		return launch.ExitUsage
	}
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = res.failed()
	}
	if err == nil {
		return launch.ExitOK
	}
	if !app.started && res.failed() == nil { // cobra refused the command line
		fmt.Fprintf(app.err, "gotrain: %v\nhint: gotrain --help, or gotrain VERB --help\n", err)
		return launch.ExitUsage
	}
	var report *launch.Failure
	switch msg := err.Error(); {
	case errors.As(err, &report): // several lines with their own prefixes
		fmt.Fprintln(stderr, msg)
	case msg != "":
		fmt.Fprintf(app.err, "gotrain: %s\n", msg)
	}
	launch.Report(launch.WithCode(exitCode(err), err))
	return exitCode(err)
}

// app is the state that all verbs share.
type app struct {
	// Output may quote names and texts from files that others made: these writers escape control characters. JSON stays JSON.
	out, err io.Writer
	// The unfiltered streams, for output that moves the cursor on purpose and for results that are bytes.
	rawOut, rawErr io.Writer
	result         *result           // rawOut, and whether it took everything
	level          logLevel          // of --log-level
	started        bool              // flags and arguments were accepted
	group          comm.Communicator // the other ranks of this process's job; nil: it is alone, or has not met them
}

const exitHelp = `
Exit codes:
`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "gotrain",
		Short: "Train neural networks data-parallel, from one binary",
		Long: `gotrain trains neural networks data-parallel: on the cores of this machine, or as ranks under mpirun, torchrun, srun or hcclrun.
Ranks may be on several machines: hcclrun starts them.

A run is described by a recipe, a TOML file. The binary has some built in (gotrain recipes list); --set section.key=value changes any key.
` + exitHelp + launch.CodeTable(),
		Example: `  gotrain run recipes/quickstart.toml
  gotrain run resnet50 --set data.root=/data/my-photographs --ranks 4
  gotrain plan resnet50-imagenet --ranks 64`,
		SilenceUsage: true, SilenceErrors: true, Version: train.Version(),
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			err := errors.Join(c.ValidateRequiredFlags(), c.ValidateFlagGroups()) // cobra does it only after this hook
			a.started = err == nil
			a.logTo(a.err)
			return err
		},
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetVersionTemplate("gotrain {{.Version}}\n")
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.AddCommand(a.runCmd(), a.validateCmd(), a.planCmd(), a.evalCmd(), a.recipesCmd(), a.inspectCmd(), a.importCmd(), a.exportCmd(),
		a.predictCmd(), a.generateCmd(), a.dataCmd(), a.tokenizeCmd(), a.benchCmd(), a.doctorCmd(), a.versionCmd(), a.docsCmd())
	root.CompletionOptions.HiddenDefaultCmd = false
	a.addLogLevel(root)
	a.fixCompletion(root)
	return root
}

// exitCode is launch.ExitCode, extended to errors of packages that do not know exit codes.
func exitCode(err error) int {
	code := launch.ExitCode(err)
	if code != launch.ExitTraining {
		return code
	}
	var peer *comm.PeerError
	var mismatch *comm.MismatchError
	var consensus *comm.ConsensusError
	switch {
	case errors.As(err, &mismatch), errors.As(err, &consensus):
		return launch.ExitInternal
	case errors.As(err, &peer):
		return launch.ExitUnavailable
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return launch.ExitNoInput
	}
	return code
}
