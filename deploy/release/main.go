package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	// An interrupt ends the build, and what is temporary is removed.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	set := flag.NewFlagSet("release", flag.ContinueOnError)
	out := set.String("out", "dist", "folder of the archives")
	list := set.String("targets", "linux/amd64,linux/arm64,darwin/arm64,darwin/amd64", "platforms, separated by commas")
	commit := set.String("commit", "HEAD", "what to build")
	again := set.Bool("again", false, "build a second time with an empty cache, and compare")
	if err := set.Parse(args); err != nil {
		return err
	}
	targets, err := parseTargets(*list)
	if err != nil {
		return err
	}
	first, err := clone(ctx, *commit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, first.remove()) }()
	sums, err := first.all(ctx, targets, *out)
	if err != nil || !*again {
		return err
	}
	second, err := clone(ctx, *commit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, second.remove()) }()
	second.env = []string{"GOCACHE=" + filepath.Join(second.dir, "cache")}
	if got, err := second.all(ctx, targets, filepath.Join(second.dir, "out")); err != nil {
		return err
	} else if got != sums {
		return fmt.Errorf("the second build differs:\n%s\nfirst:\n%s", got, sums)
	}
	fmt.Println("built twice, with the same bytes")
	return nil
}

// release is a clone of the repository at one commit. Building from a clone keeps changes and stray files out, and lets Go read the commit, which it does
// not in a linked worktree.
type release struct {
	dir, root string
	env       []string  // in addition to this process's
	time      time.Time // of the commit: of all files in the archives
}

func clone(ctx context.Context, commit string) (*release, error) {
	from, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("%w\nhint: a release is built from a git repository", err)
	}
	hash, err := git(ctx, from, "rev-parse", "--verify", commit+"^{commit}")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "gotrain-release-")
	if err != nil {
		return nil, err
	}
	r := &release{dir: dir, root: filepath.Join(dir, "gotrain")}
	steps := [][]string{{"clone", "-q", "--no-hardlinks", "--no-checkout", from, r.root}, {"-C", r.root, "checkout", "-q", "--detach", hash}}
	for _, args := range steps {
		if _, err := git(ctx, dir, args...); err != nil {
			return nil, errors.Join(err, r.remove())
		}
	}
	when, err := git(ctx, r.root, "log", "-1", "--format=%cI")
	if err == nil {
		r.time, err = time.Parse(time.RFC3339, when)
	}
	if err != nil {
		return nil, errors.Join(err, r.remove())
	}
	r.time = r.time.UTC()
	return r, nil
}

func (r *release) remove() error { return os.RemoveAll(r.dir) }

// all builds the archives of all targets and their checksums, and returns the latter.
func (r *release) all(ctx context.Context, targets []target, out string) (string, error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", err
	}
	var names []string
	for _, t := range targets {
		name, err := r.one(ctx, t, out)
		if err != nil {
			return "", fmt.Errorf("%s: %w", t, err)
		}
		fmt.Println(filepath.Join(out, name))
		names = append(names, name)
	}
	slices.Sort(names)
	sums, err := checksums(out, names)
	if err != nil {
		return "", err
	}
	fmt.Println(filepath.Join(out, sumsFile))
	return sums, os.WriteFile(filepath.Join(out, sumsFile), []byte(sums), 0o644)
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...))
}

// output runs a command; its error has what the command said.
func output(cmd *exec.Cmd) (string, error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(string(text)), nil
}
