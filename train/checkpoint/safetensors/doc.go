// Package safetensors reads and writes the safetensors format: named tensors, a JSON header that says where each lies,
// and nothing that executes.
//
// # In short
//
//	f, err := safetensors.Open("model.safetensors")        // memory-mapped, header fully checked
//	set, err := safetensors.OpenSet("dir, file or index")  // one file, or shards joined by model.safetensors.index.json
//	t, ok := f.Lookup("conv1.weight")                      // name, dtype, shape
//	err = f.Read("conv1.weight", dst)                      // raw little-endian bytes, row-major
//	x, err := f.Float32s("conv1.weight")                   // F64, F32, F16 and BF16 widened or rounded to float32
//	err = safetensors.Write(w, tensors, metadata, func(t Tensor, w io.Writer) error { … })  // streams, one tensor at a time
//
// # The format
//
// A little-endian u64 N, N bytes of JSON that begin with "{" and may end with spaces, then the data. The JSON maps each name to
// {"dtype", "shape", "data_offsets": [begin, end)} with offsets into the data, and "__metadata__" to a map of strings. A reader of this package
// refuses a header over 100 MB, a name that is there twice, a dtype it does not know, a size that is not shape × dtype, and data that leave a
// hole, overlap, or do not end where the file ends. What it accepts is therefore safe to index.
//
// The writer puts wider dtypes first, then names in order, and pads the header so that the data start at a multiple of 8 bytes; the
// same tensors always give the same bytes. It only writes: a temporary file, fsync and rename are the caller's.
package safetensors
