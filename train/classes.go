package train

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/checkpoint"
)

// ClassesOf are the names of the classes, by label, that the model of a checkpoint was trained on: what a source of held-out samples must be opened with, so that its labels
// mean the same. nil where the path is no checkpoint, or one that does not say (its data had no names, or a version before this one made it).
func ClassesOf(path string) ([]string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if filepath.Base(path) == checkpoint.ModelFile { // a file of one
		path = filepath.Dir(path)
	}
	if _, err := os.Stat(filepath.Join(path, checkpoint.ManifestFile)); err != nil {
		return nil, nil
	}
	st, err := checkpoint.New(checkpoint.OS{}, filepath.Dir(path), 0).State(filepath.Base(path))
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

// sameLabels says whether labels mean the same in both lists, as far as the given one goes. A list that is not known agrees with any.
func sameLabels(known, given []string) bool {
	return known == nil || len(given) <= len(known) && slices.Equal(known[:len(given)], given)
}

// checkClasses refuses to train a model on with other classes than it was trained on: its outputs would come to mean something else.
func (t *Trainer) checkClasses(st checkpoint.State) error {
	if t.evaluating {
		return t.checkHeldClasses("the checkpoint", st.Classes)
	}
	is := t.cfg.Data.Classes()
	switch {
	case st.Classes == nil || is == nil:
		if is != nil && t.comm.Rank() == 0 {
			slog.Warn("the checkpoint does not say its classes: they cannot be compared with those of the data")
		}
		return nil
	case slices.Equal(st.Classes, is):
		return nil
	}
	return launch.WithCode(launch.ExitRecipe, fmt.Errorf("train: %s has other classes than the %d that the checkpoint was trained on: %s\nhint: give the data their former names, or start another run from the weights alone with init_from",
		t.cfg.Data.Name(), len(st.Classes), classChanges(st.Classes, is)))
}

// checkInitClasses compares the classes of initial weights with those of the data. In an evaluation other classes are an error. A training may start from any, but is told
// where a classifier that stood for others is kept.
func (t *Trainer) checkInitClasses(path string, head bool) error {
	was, err := ClassesOf(path)
	if err != nil {
		return fmt.Errorf("train: initial weights: %w", err)
	}
	if t.evaluating {
		return t.checkHeldClasses(path, was)
	}
	if is := t.cfg.Data.Classes(); head && was != nil && is != nil && !slices.Equal(was, is) && t.comm.Rank() == 0 {
		slog.Warn("the initial weights were trained on other classes, and so was the classifier that training starts from", "file", path, "changes", classChanges(was, is))
	}
	return nil
}

// checkHeldClasses refuses to evaluate samples whose labels mean something else than the outputs of the model.
func (t *Trainer) checkHeldClasses(model string, was []string) error {
	is := t.cfg.Eval.Classes()
	if sameLabels(was, is) {
		return nil
	}
	return launch.WithCode(launch.ExitRecipe, fmt.Errorf("train: %s has other classes, or in another order, than the %d that %s was trained on: %s\nhint: open the held-out samples with the classes of the checkpoint (train.ClassesOf)",
		t.cfg.Eval.Name(), len(was), model, classChanges(was, is)))
}
