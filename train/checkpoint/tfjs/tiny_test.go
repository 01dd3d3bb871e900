package tfjs_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// keras is a model as TensorFlow.js stores it.
type keras struct {
	names  []string
	shapes map[string][]int
	values map[string][]float32
}

func (k *keras) add(name string, shape ...int) {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(len(k.names)+1) + float32(i)/4096 // identifies tensor and element
	}
	k.names = append(k.names, name)
	k.shapes[name], k.values[name] = shape, v
}

func (k *keras) conv(conv, norm string, size, in, out int) {
	for _, s := range []string{"gamma", "beta", "moving_mean", "moving_variance"} {
		k.add(norm+"/"+s, out)
	}
	k.add(conv+"/kernel", size, size, in, out)
	k.add(conv+"/bias", out)
}

// tiny is a ResNet-50 with width channels instead of 64, and 10 classes.
func tiny(width int) *keras {
	k := &keras{shapes: map[string][]int{}, values: map[string][]float32{}}
	k.add("fc1000/kernel", 32*width, 10)
	k.add("fc1000/bias", 10)
	k.conv("conv1", "bn_conv1", 7, 3, width)
	in := width
	for s, blocks := range []string{"abc", "abcd", "abcdef", "abc"} {
		w := width << s
		for _, b := range blocks {
			at := fmt.Sprintf("%d%c_branch", s+2, b)
			if b == 'a' {
				k.conv("res"+at+"1", "bn"+at+"1", 1, in, 4*w)
			}
			k.conv("res"+at+"2a", "bn"+at+"2a", 1, in, w)
			k.conv("res"+at+"2b", "bn"+at+"2b", 3, w, w)
			k.conv("res"+at+"2c", "bn"+at+"2c", 1, w, 4*w)
			in = 4 * w
		}
	}
	return k
}

// files are model.json and shards of the given number of bytes.
func (k *keras) files(shard int) map[string][]byte {
	var data []byte
	type entry struct {
		Name  string `json:"name"`
		Shape []int  `json:"shape"`
		DType string `json:"dtype"`
	}
	var list []entry
	for _, n := range k.names {
		list = append(list, entry{n, k.shapes[n], "float32"})
		for _, v := range k.values[n] {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
	}
	out := map[string][]byte{}
	var paths []string
	for len(data) > 0 {
		n := min(shard, len(data))
		paths = append(paths, fmt.Sprintf("group1-shard%d.bin", len(paths)+1))
		out[paths[len(paths)-1]], data = data[:n], data[n:]
	}
	text, err := json.Marshal(map[string]any{"format": "layers-model", "weightsManifest": []any{map[string]any{"paths": paths, "weights": list}}})
	if err != nil {
		panic(err)
	}
	out["model.json"] = text
	return out
}

// store writes files into dir.
func store(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, raw := range files {
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
			return err
		}
	}
	return nil
}
