package graphtest

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func safetensors(header string, data ...byte) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data...)
}

func TestReference(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.safetensors")
	raw := safetensors(`{"__metadata__":{"by":"me"},"f":{"dtype":"F32","data_offsets":[0,4]},"b":{"dtype":"BF16","data_offsets":[4,8]},`+
		`"i":{"dtype":"I32","data_offsets":[8,12]}}`, 0, 0, 0x20, 0x40, 0x80, 0x3f, 0, 0xc0, 0xff, 0xff, 0xff, 0xff)
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Reference(file)
	if want := map[string][]float64{"f": {2.5}, "b": {1, -2}, "i": {-1}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Reference(file + "x"); err == nil {
		t.Error("reads a file that is not there")
	}
}

func TestReferenceFaults(t *testing.T) {
	one := func(tensor string) []byte { return safetensors(`{"x":`+tensor+`}`, 0, 0, 0, 0) }
	for want, raw := range map[string][]byte{
		"no safetensors file: 3 bytes": {1, 2, 3}, "no safetensors file": {9, 0, 0, 0, 0, 0, 0, 0, 1}, "unexpected end": safetensors(`{`),
		"x: bytes 0 to 8 of 4": one(`{"dtype":"F32","data_offsets":[0,8]}`), "x: bytes 4 to 0": one(`{"dtype":"F32","data_offsets":[4,0]}`),
		"x: dtype F64": one(`{"dtype":"F64","data_offsets":[0,4]}`), "x: 2 bytes of F32": one(`{"dtype":"F32","data_offsets":[0,2]}`),
		"x: json": one(`[]`),
	} {
		if _, err := reference(raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestDistance(t *testing.T) {
	if d := Distance([]float64{3, 4.5}, []float64{3, 4}); d != 0.1 {
		t.Error(d)
	}
	if d := Distance([]float64{3}, []float64{3, 4}); !math.IsInf(d, 1) {
		t.Error(d)
	}
}
