package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/train/telemetry"
)

// logLevel is how much is logged: the value of --log-level.
type logLevel string

const (
	levelQuiet logLevel = "quiet"
	levelInfo  logLevel = "info"
	levelDebug logLevel = "debug"
)

var logLevels = []string{string(levelQuiet), string(levelInfo), string(levelDebug)}

func (l logLevel) String() string { return string(l) }

// Set implements pflag.Value.
func (l *logLevel) Set(s string) error {
	for _, v := range logLevels {
		if s == v {
			*l = logLevel(s)
			return nil
		}
	}
	return fmt.Errorf("one of %s", strings.Join(logLevels, ", "))
}

// Type is the name of the value in --help.
func (l logLevel) Type() string { return "level" }

// least returns the lowest level of records that are printed.
func (l logLevel) least() slog.Level {
	switch l {
	case levelQuiet:
		return slog.LevelError
	case levelDebug:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// console returns where a rank prints its steps and evaluations: nowhere if only errors are wanted. Metrics files do not depend on it.
func (l logLevel) console(t *telemetry.Terminal) *telemetry.Terminal {
	if l == levelQuiet {
		return telemetry.NewTerminal(io.Discard, 0, false)
	}
	return t
}

// addLogLevel adds the flag to all verbs.
func (a *app) addLogLevel(root *cobra.Command) {
	a.level = levelInfo
	root.PersistentFlags().Var(&a.level, "log-level",
		`how much to log: "quiet", errors only; "info"; "debug", also the reasons for decisions and every kernel of the plan`)
	err := root.RegisterFlagCompletionFunc("log-level", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return logLevels, cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // a programmer's mistake
	}
}

// logTo sends the packages' log to w, for verbs that are not a rank of a job.
func (a *app) logTo(w io.Writer) {
	slog.SetDefault(slog.New(telemetry.NewHandler(telemetry.NewTerminal(w, 0, false), telemetry.Identity{World: 1}, telemetry.LogOptions{Level: a.level.least()})))
}
