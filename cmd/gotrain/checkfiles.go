package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/data"
)

// badSamples are the samples of a run that cannot be loaded.
type badSamples struct {
	bad []data.BadSample
	of  int // samples checked
}

// ExitCode is the code for data that cannot be read.
func (b *badSamples) ExitCode() int { return launch.ExitNoInput }

func (b *badSamples) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d of %d samples cannot be loaded:", len(b.bad), b.of)
	for _, x := range b.bad {
		fmt.Fprintf(&s, "\n  %v", x.Err)
	}
	s.WriteString("\nhint: fix or remove these files, or let runs skip them with data.bad_files = \"skip\"")
	return s.String()
}

// checkFiles loads every sample of the sources once.
func checkFiles(ctx context.Context, seed uint64, sources ...data.Source) error {
	all := &badSamples{}
	for _, src := range sources {
		if src == nil {
			continue
		}
		bad, err := data.Check(ctx, src, seed)
		if err != nil {
			return err
		}
		all.bad, all.of = append(all.bad, bad...), all.of+src.Len()
	}
	if len(all.bad) > 0 {
		return all
	}
	return nil
}
