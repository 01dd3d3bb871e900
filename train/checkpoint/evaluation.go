package checkpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
)

// EvaluationFile holds, next to the files of the manifest, the result of an evaluation of the checkpoint's weights. It is written after the
// checkpoint was committed, so that an evaluation that fails, or is killed, loses no training.
const EvaluationFile = "evaluation.json"

// evaluation is the contents of the file. Of is the manifest's self-checksum: a file copied to another checkpoint is ignored.
type evaluation struct {
	Format  int                `json:"format"`
	Of      string             `json:"of"`
	Metrics map[string]float64 `json:"metrics"` // finite ones only
	Arrays  map[string]Array   `json:"arrays,omitempty"`
}

// Evaluated adds the results of an evaluation to a saved checkpoint. Load returns them as State.Metrics and State.Arrays.
func (s *Store) Evaluated(ctx context.Context, name string, metrics map[string]float64, arrays map[string]Array) error {
	m, err := s.manifest(name)
	if err != nil {
		return fmt.Errorf("checkpoint: %s: %w", filepath.Join(s.root, name), err)
	}
	raw, err := json.MarshalIndent(evaluation{Format, m.Self, finite(metrics), arrays}, "", "  ")
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

// evaluated reads what Evaluated wrote; nil if nothing valid for this checkpoint exists. A file that is missing, torn, foreign or unreadable costs a
// second evaluation, never the checkpoint.
func (s *Store) evaluated(name string, m Manifest) (metrics map[string]float64, arrays map[string]Array) {
	raw, err := s.readSmall(filepath.Join(s.root, name, EvaluationFile))
	if err != nil {
		return nil, nil
	}
	var e evaluation
	if json.Unmarshal(raw, &e) != nil || checkFormat(EvaluationFile, e.Format) != nil || e.Of != m.Self {
		return nil, nil
	}
	return e.Metrics, e.Arrays
}
