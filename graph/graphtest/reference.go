package graphtest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
)

// Reference reads the tensors of a safetensors file, of float32, bfloat16 and int32: what another implementation computed, for comparisons.
func Reference(file string) (map[string][]float64, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out, err := reference(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return out, nil
}

func reference(raw []byte) (map[string][]float64, error) {
	if len(raw) < 8 || binary.LittleEndian.Uint64(raw) > uint64(len(raw)-8) {
		return nil, fmt.Errorf("no safetensors file: %d bytes", len(raw))
	}
	body := 8 + int(binary.LittleEndian.Uint64(raw))
	var header map[string]json.RawMessage
	if err := json.Unmarshal(raw[8:body], &header); err != nil {
		return nil, err
	}
	delete(header, "__metadata__") // which is not a tensor
	out := map[string][]float64{}
	for name, m := range header {
		var e struct {
			DType   string
			Offsets [2]int `json:"data_offsets"`
		}
		err := json.Unmarshal(m, &e)
		if from, to := e.Offsets[0], e.Offsets[1]; err == nil && (from < 0 || from > to || to > len(raw)-body) {
			err = fmt.Errorf("bytes %d to %d of %d", from, to, len(raw)-body)
		}
		if err == nil {
			out[name], err = numbers(e.DType, raw[body:][e.Offsets[0]:e.Offsets[1]])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

// numbers are the elements of a tensor, of which the last one is whole.
func numbers(dtype string, b []byte) ([]float64, error) {
	le, size := binary.LittleEndian, 4
	var at func(b []byte) float64
	switch dtype {
	case "F32":
		at = func(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) }
	case "BF16":
		size, at = 2, func(b []byte) float64 { return float64(math.Float32frombits(uint32(le.Uint16(b)) << 16)) }
	case "I32":
		at = func(b []byte) float64 { return float64(int32(le.Uint32(b))) }
	default:
		return nil, fmt.Errorf("dtype %s", dtype)
	}
	if len(b)%size != 0 {
		return nil, fmt.Errorf("%d bytes of %s", len(b), dtype)
	}
	v := make([]float64, 0, len(b)/size)
	for ; len(b) > 0; b = b[size:] {
		v = append(v, at(b))
	}
	return v, nil
}

// Distance is that of two vectors relative to the norm of the second; infinite if their lengths differ.
func Distance(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	var d, n float64
	for i := range got {
		d += (got[i] - want[i]) * (got[i] - want[i])
		n += want[i] * want[i]
	}
	return math.Sqrt(d / n)
}
