package data

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// Ignore is the label of a row that does not count: the default ignore_index of the cross_entropy op.
const Ignore = -100

// Field describes one tensor of a sample, without the batch dimension.
type Field struct {
	Name  string
	Shape []int // of one sample; empty for a scalar such as a label
	DType npu.DType
	// Target marks a field that holds what the model learns to predict: labels (I32 or I64), or probabilities of classes (F32). In rows that do not count the
	// loader sets labels to Ignore and probabilities to 0.
	Target bool
}

// Elems is the number of elements of one sample's tensor.
func (f Field) Elems() int {
	n := 1
	for _, d := range f.Shape {
		n *= d
	}
	return n
}

// Bytes is the size of one sample's tensor.
func (f Field) Bytes() int { return f.Elems() * f.DType.Size() }

// String returns "image f32[3 224 224]".
func (f Field) String() string { return fmt.Sprintf("%s %s%v", f.Name, f.DType, f.Shape) }

// Source is a set of samples that can be read in any order. All methods may be called concurrently.
type Source interface {
	// Name identifies the source to users by kind and place, such as "folder flowers/train".
	Name() string
	// Len is the number of samples.
	Len() int
	// Classes are the names of the classes by label, or nil if the source has none.
	Classes() []string
	// Fields describes the tensors of a sample; they are the same for every sample.
	Fields() []Field
	// Load writes sample i (0 ≤ i < Len) into dst, one slice per field, each exactly Field.Bytes long and aligned to its
	// element size, in host byte order (see F32 and I32). All randomness comes from r, so that the same (i, r) gives the same bytes. An error names the
	// file or record.
	Load(ctx context.Context, r *Rand, i int, dst [][]byte) error
	// Fingerprint is a short hash of what the source holds (names, sizes, counts; not necessarily contents), equal on all ranks
	// and after a restart if the data are the same.
	Fingerprint() (string, error)
}

// Preparing is a Source that says how its samples are made where nothing is augmented. A checkpoint keeps what it says, so that a prediction prepares its
// inputs in the same way; for pictures it is an images.Preparation in JSON.
type Preparing interface{ Preparation() json.RawMessage }

// Paired is a source that mixes samples in pairs. The loader brings the same samples together however a global batch is divided among ranks and workers.
type Paired interface {
	Source
	// Pair changes two loaded samples. All randomness comes from r, which depends on the seed, the epoch and the first sample.
	Pair(r *Rand, a, b [][]byte)
}

// checkFields rejects fields that the loader cannot hold.
func checkFields(s Source) error {
	fields := s.Fields()
	if len(fields) == 0 {
		return fmt.Errorf("data: source %s has no fields", s.Name())
	}
	var names []string
	for _, f := range fields {
		if f.Name == "" || slices.Contains(names, f.Name) {
			return fmt.Errorf("data: source %s: field name %q is empty or used twice", s.Name(), f.Name)
		}
		names = append(names, f.Name)
		if f.DType.Size() == 0 || f.Elems() <= 0 {
			return fmt.Errorf("data: source %s: field %s has no size", s.Name(), f)
		}
		if f.Target && f.DType != npu.I32 && f.DType != npu.I64 && f.DType != npu.F32 {
			return fmt.Errorf("data: source %s: target field %s must be i32, i64 or f32", s.Name(), f)
		}
	}
	return nil
}
