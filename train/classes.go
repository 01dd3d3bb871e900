package train

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/checkpoint"
)

// ClassesOf returns the class names, by label, that the model of a checkpoint was trained on. Open a source of held-out samples with them, so that
// its labels mean the same. It returns nil if the path is not a checkpoint, or if the checkpoint does not record them (the data had no names, or an
// older version wrote it).
func ClassesOf(path string) ([]string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if filepath.Base(path) == checkpoint.ModelFile { // a file inside one
		path = filepath.Dir(path)
	}
	at, single := checkpoint.Resolve(path)
	if !single {
		return nil, nil
	}
	st, err := checkpoint.New(checkpoint.OS{}, filepath.Dir(at), 0).State(filepath.Base(at))
	return st.Classes, err
}

// classChanges lists how one list of classes differs from another, "" where they are equal.
func classChanges(was, is []string) string {
	var gone, added, moved, out []string
	for i, name := range was {
		switch at := slices.Index(is, name); {
		case at < 0:
			gone = append(gone, name)
		case at != i:
			moved = append(moved, fmt.Sprintf("%s %d -> %d", name, i, at))
		}
	}
	for _, name := range is {
		if !slices.Contains(was, name) {
			added = append(added, name)
		}
	}
	for _, part := range []struct {
		what  string
		names []string
	}{{"missing", gone}, {"unknown", added}, {"at another label", moved}} {
		if len(part.names) > 0 {
			out = append(out, fmt.Sprintf("%s: %s", part.what, strings.Join(shorten(part.names, 12), ", ")))
		}
	}
	return strings.Join(out, "; ")
}

// sameLabels reports whether labels mean the same in both lists, as far as the given one reaches. An unknown list agrees with any.
func sameLabels(known, given []string) bool {
	return known == nil || len(given) <= len(known) && slices.Equal(known[:len(given)], given)
}

// checkClasses refuses to continue training a model on classes other than its own: the outputs would change their meaning.
func (t *Trainer) checkClasses(st checkpoint.State) error {
	if t.evaluating {
		return t.checkHeldClasses("the checkpoint", st.Classes)
	}
	is := t.cfg.Data.Classes()
	switch {
	case st.Classes == nil || is == nil:
		if is != nil && t.comm.Rank() == 0 {
			slog.Warn("the checkpoint does not record its classes, so they cannot be compared with those of the data")
		}
		return nil
	case slices.Equal(st.Classes, is):
		return nil
	}
	return launch.WithCode(launch.ExitRecipe, fmt.Errorf(
		"train: the classes of %s differ from the %d that the checkpoint was trained on: %s\n"+
			"hint: restore the former class names, or start another run from the weights alone with init_from",
		t.cfg.Data.Name(), len(st.Classes), classChanges(st.Classes, is)))
}

// checkInitClasses compares the classes of initial weights with those of the data. For an evaluation, a difference is an error. Training may start
// from any classes, but warns if it keeps a classifier that was trained on different ones.
func (t *Trainer) checkInitClasses(path string, head bool) error {
	was, err := ClassesOf(path)
	if err != nil {
		return fmt.Errorf("train: initial weights: %w", err)
	}
	if t.evaluating {
		return t.checkHeldClasses(path, was)
	}
	if is := t.cfg.Data.Classes(); head && was != nil && is != nil && !slices.Equal(was, is) && t.comm.Rank() == 0 {
		slog.Warn("the initial weights, including the classifier, were trained on different classes", "file", path, "changes", classChanges(was, is))
	}
	return nil
}

// checkHeldClasses refuses to evaluate samples whose labels mean something other than the outputs of the model.
func (t *Trainer) checkHeldClasses(model string, was []string) error {
	is := t.cfg.Eval.Classes()
	if sameLabels(was, is) {
		return nil
	}
	return launch.WithCode(launch.ExitRecipe, fmt.Errorf(
		"train: the classes of %s differ, in name or order, from the %d that %s was trained on: %s\n"+
			"hint: open the held-out samples with the classes of the checkpoint (train.ClassesOf)",
		t.cfg.Eval.Name(), len(was), model, classChanges(was, is)))
}
