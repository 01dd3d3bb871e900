// Package safetensors reads and writes the safetensors format: named tensors, a JSON header with their places, and nothing executable.
//
// # Overview
//
//	f, err := safetensors.Open("model.safetensors")        // memory-mapped, header fully validated
//	set, err := safetensors.OpenSet("dir, file or index")  // one file, or shards joined by model.safetensors.index.json
//	t, ok := f.Lookup("conv1.weight")                      // name, dtype, shape
//	err = f.Read("conv1.weight", dst)                      // raw little-endian bytes, row-major
//	x, err := f.Float32s("conv1.weight")                   // F64, F32, F16 and BF16 widened or rounded to float32
//	err = safetensors.Write(w, tensors, metadata, func(t Tensor, w io.Writer) error { … })  // streams, one tensor at a time
//
// # The format
//
// A little-endian u64 N, N bytes of JSON that begin with "{" and may end with spaces, then the data. The JSON maps each name to {"dtype", "shape",
// "data_offsets": [begin, end)} with offsets into the data, and "__metadata__" to a map of strings. The reader rejects a header over 100 MB,
// duplicate names, an unknown dtype, a size other than shape × dtype, and data that leave a hole, overlap, or do not end where the file ends. What it
// accepts is therefore safe to index.
//
// The writer stores wider dtypes first, then sorts by name, and pads the header so that the data start at a multiple of 8 bytes; the same tensors
// always give the same bytes. It only writes: a temporary file, fsync and rename are up to the caller.
package safetensors
