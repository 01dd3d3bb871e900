package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/train/telemetry"
)

// logLevel is how much is told on the way: the value of --log-level.
type logLevel string

const (
	levelQuiet logLevel = "quiet"
	levelInfo  logLevel = "info"
	levelDebug logLevel = "debug"
)

var logLevels = []string{string(levelQuiet), string(levelInfo), string(levelDebug)}

func (l logLevel) String() string { return string(l) }

// Set is for the parser of flags.
func (l *logLevel) Set(s string) error {
	for _, v := range logLevels {
		if s == v {
			*l = logLevel(s)
			return nil
		}
	}
	return fmt.Errorf("one of %s", strings.Join(logLevels, ", "))
}

// Type is for --help.
func (l logLevel) Type() string { return "level" }

// least is the least level of records that are printed.
func (l logLevel) least() slog.Level {
	switch l {
	case levelQuiet:
		return slog.LevelError
	case levelDebug:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// console is where a rank's steps and evaluations are printed: nowhere if only errors are wanted. Files of metrics do not depend on it.
func (l logLevel) console(t *telemetry.Terminal) *telemetry.Terminal {
	if l == levelQuiet {
		return telemetry.NewTerminal(io.Discard, 0, false)
	}
	return t
}

// addLogLevel gives all verbs the flag.
func (a *app) addLogLevel(root *cobra.Command) {
	a.level = levelInfo
	root.PersistentFlags().Var(&a.level, "log-level", `how much is told: "quiet", errors only; "info"; "debug", also why things are as they are, and every kernel of the plan`)
	err := root.RegisterFlagCompletionFunc("log-level", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return logLevels, cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // a programmer's mistake
	}
}

// logTo makes what packages tell go to standard error, for verbs that are no rank of a job.
func (a *app) logTo(w io.Writer) {
	slog.SetDefault(slog.New(telemetry.NewHandler(telemetry.NewTerminal(w, 0, false), telemetry.Identity{World: 1}, telemetry.LogOptions{Level: a.level.least()})))
}
