package main

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/confusion"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/foreign"
)

// evalFlags are the flags of eval that say what to print.
type evalFlags struct {
	asJSON, classes bool
	confusion       []string // files, or - for the terminal
	predictions     string
	worst, top      int
}

// samples reports whether the evaluation must know every sample.
func (f *evalFlags) samples() bool {
	return f.classes || len(f.confusion) > 0 || f.predictions != "" || f.worst > 0
}

// check finds mistakes in the flags, and on rank 0, which writes the files, whether their folders are there.
func (f *evalFlags) check(first bool) error {
	usage := func(format string, args ...any) error {
		return launch.WithCode(launch.ExitUsage, fmt.Errorf(format, args...))
	}
	if f.worst < 0 || f.top < 1 {
		return usage("--worst %d, --top %d: at least 0 and 1", f.worst, f.top)
	}
	for _, to := range f.confusion {
		if ext := strings.ToLower(filepath.Ext(to)); to != "-" && ext != ".csv" && ext != ".png" {
			return usage("--confusion %s: a file that ends with .csv or .png, or - for the terminal", to)
		}
	}
	if ext := strings.ToLower(filepath.Ext(f.predictions)); f.predictions != "" && ext != ".csv" && ext != ".jsonl" {
		return usage("--predictions %s: a file that ends with .csv or .jsonl", f.predictions)
	}
	for _, to := range append(slices.Clone(f.confusion), f.predictions) { // before the work
		if to == "" || to == "-" || !first {
			continue
		}
		if st, err := os.Stat(to); err == nil && st.IsDir() {
			return launch.WithCode(launch.ExitStorage, fmt.Errorf("%s cannot be written: it is a folder", to))
		}
		if st, err := os.Stat(filepath.Dir(to)); err != nil || !st.IsDir() {
			return launch.WithCode(launch.ExitStorage, fmt.Errorf("%s cannot be written: there is no folder %s", to, filepath.Dir(to)))
		}
		if err := writable(to); err != nil {
			return err
		}
	}
	return nil
}

// judged is one held-out sample with names, as --predictions and --worst show it.
type judged struct {
	Index     int          `json:"index"`
	Path      string       `json:"path,omitempty"`
	Label     int          `json:"label"`
	Class     string       `json:"class"`
	Correct   bool         `json:"correct"`
	Loss      float64      `json:"loss"`
	Predicted []namedGuess `json:"predicted"`
}

type namedGuess struct {
	train.Guess
	Class string `json:"class"`
}

// evaluation is what eval knows of all samples.
type evaluation struct {
	matrix  *confusion.Matrix
	samples []judged
}

// newEvaluation names classes and samples.
func newEvaluation(all []train.Sample, src data.Source, outputs int) (*evaluation, error) {
	names := slices.Clone(src.Classes())
	for i := len(names); i < outputs; i++ {
		names = append(names, strconv.Itoa(i))
	}
	e := &evaluation{matrix: confusion.New(names)}
	files, _ := src.(interface{ Path(i int) string })
	for _, s := range all {
		if s.Label < 0 {
			continue // it does not count
		}
		if err := e.matrix.Add(s.Label, s.Top[0].Label); err != nil {
			return nil, err
		}
		j := judged{Index: s.Index, Label: s.Label, Class: names[s.Label], Correct: s.Top[0].Label == s.Label, Loss: s.Loss}
		if files != nil {
			j.Path = files.Path(s.Index)
		}
		for _, g := range s.Top {
			j.Predicted = append(j.Predicted, namedGuess{g, names[g.Label]})
		}
		e.samples = append(e.samples, j)
	}
	return e, nil
}

// worst are the n samples of the largest loss.
func (e *evaluation) worst(n int) []judged {
	out := slices.Clone(e.samples)
	slices.SortStableFunc(out, func(a, b judged) int { return cmp.Compare(b.Loss, a.Loss) })
	return out[:min(n, len(out))]
}

// place is where a sample is from.
func (j judged) place() string {
	if j.Path != "" {
		return j.Path
	}
	return "sample " + strconv.Itoa(j.Index)
}

// show prints what the flags ask for below the result, and writes the files.
func (e *evaluation) show(out io.Writer, f *evalFlags) error {
	if f.classes {
		fmt.Fprintln(out)
		if err := e.matrix.WriteClasses(out); err != nil {
			return err
		}
	}
	if slices.Contains(f.confusion, "-") {
		fmt.Fprintln(out)
		if err := e.matrix.WriteText(out); err != nil {
			return err
		}
	}
	if f.worst > 0 {
		fmt.Fprintf(out, "\nthe largest losses\n")
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, j := range e.worst(f.worst) {
			fmt.Fprintf(w, "  %.3f\t%s\t%s\ttaken for %s %.1f %%\n", j.Loss, foreign.Line(j.place()), j.Class, j.Predicted[0].Class, 100*j.Predicted[0].Probability)
		}
		return w.Flush()
	}
	return nil
}

// files writes the files that the flags ask for.
func (e *evaluation) files(f *evalFlags) error {
	for _, to := range f.confusion {
		write := e.matrix.WriteCSV
		switch {
		case to == "-":
			continue
		case strings.EqualFold(filepath.Ext(to), ".png"):
			write = e.matrix.WritePNG
		}
		if err := writeWhole(to, write); err != nil {
			return err
		}
	}
	switch {
	case f.predictions == "":
		return nil
	case strings.EqualFold(filepath.Ext(f.predictions), ".csv"):
		return writeWhole(f.predictions, e.writeCSV)
	}
	return writeWhole(f.predictions, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		for _, j := range e.samples {
			if err := enc.Encode(j); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *evaluation) writeCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	w.Write([]string{"index", "path", "label", "class", "predicted", "predicted_class", "probability", "correct", "loss"}) // errors are kept and returned below
	for _, j := range e.samples {
		best := j.Predicted[0]
		w.Write([]string{strconv.Itoa(j.Index), j.Path, strconv.Itoa(j.Label), j.Class, strconv.Itoa(best.Label), best.Class,
			strconv.FormatFloat(best.Probability, 'g', 9, 64), strconv.FormatBool(j.Correct), strconv.FormatFloat(j.Loss, 'g', 9, 64)})
	}
	w.Flush()
	return w.Error()
}

// writable tells whether writeWhole can begin.
func writable(path string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return launch.WithCode(launch.ExitStorage, fmt.Errorf("%s cannot be written: %w", path, err))
	}
	tmp.Close()
	return os.Remove(tmp.Name())
}

// writeWhole writes a file that appears when it is complete.
func writeWhole(path string, write func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err == nil {
		err = write(tmp)
		if e := tmp.Close(); err == nil {
			err = e
		}
		if err == nil {
			err = os.Chmod(tmp.Name(), 0o644)
		}
		if err == nil {
			err = os.Rename(tmp.Name(), path)
		}
		if err != nil {
			os.Remove(tmp.Name())
		}
	}
	if err != nil {
		return launch.WithCode(launch.ExitStorage, fmt.Errorf("%s cannot be written: %w", path, err))
	}
	return nil
}

// detailed is the result for --json: the numbers, and what the flags ask for.
func (e *evaluation) detailed(sums map[string]float64, f *evalFlags) map[string]any {
	out := map[string]any{}
	for name, v := range sums {
		out[name] = v
	}
	if f.classes {
		out["classes"] = e.matrix.Classes()
	}
	if slices.Contains(f.confusion, "-") {
		out["confusion"] = e.matrix.Counts()
	}
	if f.worst > 0 {
		out["worst"] = e.worst(f.worst)
	}
	return out
}
