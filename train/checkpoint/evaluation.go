package checkpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
)

// EvaluationFile holds, beside the files of the manifest, what an evaluation of the checkpoint's weights came to. It is written after the checkpoint was
// committed, so that an evaluation which fails, or is killed, costs no training.
const EvaluationFile = "evaluation.json"

// evaluation is the contents of the file. Of is the manifest's checksum of itself: a file that was copied to another checkpoint says nothing.
type evaluation struct {
	Format  int                `json:"format"`
	Of      string             `json:"of"`
	Metrics map[string]float64 `json:"metrics"` // those that are finite
}

// Evaluated adds the metrics of an evaluation to a checkpoint that was saved before. Load gives them as State.Metrics.
func (s *Store) Evaluated(ctx context.Context, name string, metrics map[string]float64) error {
	m, err := s.manifest(name)
	if err != nil {
		return fmt.Errorf("checkpoint: %s: %w", filepath.Join(s.root, name), err)
	}
	raw, err := json.MarshalIndent(evaluation{Format, m.Self, finite(metrics)}, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Join(s.root, name)
	tmp := filepath.Join(dir, EvaluationFile+".tmp")
	_, err = s.write(ctx, tmp, func(w io.Writer) error { _, err := w.Write(append(raw, '\n')); return err })
	if err == nil {
		err = s.fs.Rename(tmp, filepath.Join(dir, EvaluationFile))
	}
	if err == nil {
		err = s.fs.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: %s: the evaluation could not be added: %w", dir, named(err))
	}
	return nil
}

// evaluated reads what Evaluated wrote; nil where there is nothing that holds for this checkpoint. A file that is missing, torn, foreign or unreadable costs a
// second evaluation, never the checkpoint.
func (s *Store) evaluated(name string, m Manifest) map[string]float64 {
	raw, err := s.readSmall(filepath.Join(s.root, name, EvaluationFile))
	if err != nil {
		return nil
	}
	var e evaluation
	if json.Unmarshal(raw, &e) != nil || checkFormat(EvaluationFile, e.Format) != nil || e.Of != m.Self {
		return nil
	}
	return e.Metrics
}
