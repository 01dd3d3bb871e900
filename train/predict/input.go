package predict

import (
	"fmt"
	"image"
	"slices"
	"unsafe"

	"github.com/gotrain/gotrain/train/data/images"
)

// Input is one sample to predict. Make it with Bytes, File, Image, Tensor or Fields.
type Input struct {
	// fill writes the sample into memory of the fields of the model that are not targets.
	fill func(m *Model, fields [][]byte) error
}

// Bytes is an encoded picture: JPEG, PNG or GIF. It must not change during the call.
func Bytes(raw []byte) Input {
	return picture(func(p *images.Preparer, dst []float32) error { return p.Bytes(dst, raw) })
}

// File is a picture in a file.
func File(path string) Input {
	return picture(func(p *images.Preparer, dst []float32) error { return p.File(dst, path) })
}

// Image is a decoded picture.
func Image(img image.Image) Input {
	return picture(func(p *images.Preparer, dst []float32) error { return p.Image(dst, img) })
}

func picture(prepare func(*images.Preparer, []float32) error) Input {
	return Input{func(m *Model, fields [][]byte) error {
		if m.prep == nil {
			return fmt.Errorf("predict: %s does not say how a picture becomes an input of its network\nhint: pass predict.WithPictures, or prepare the picture and "+
				"pass predict.Tensor", m.path)
		}
		return prepare(m.prep, floats(fields[0]))
	}}
}

// Tensor is the input of a model with one field of dtype f32, in the order of its shape: what images.Preparer makes of a picture.
func Tensor(values []float32) Input {
	return Input{func(m *Model, fields [][]byte) error {
		if len(fields) != 1 || m.inputs[0].DType != "f32" {
			return fmt.Errorf("predict: the network reads %v, not one field of f32\nhint: pass predict.Fields", m.inputs)
		}
		if 4*len(values) != len(fields[0]) {
			return fmt.Errorf("predict: %d values for the field %s of shape %v", len(values), m.inputs[0].Name, m.inputs[0].Shape)
		}
		copy(floats(fields[0]), values)
		return nil
	}}
}

// Fields is the input of any model: the memory of each field that is not a target, by name, in host byte order.
func Fields(values map[string][]byte) Input {
	return Input{func(m *Model, fields [][]byte) error {
		for i, in := range m.inputs {
			v, ok := values[in.Name]
			if !ok || len(v) != len(fields[i]) {
				return fmt.Errorf("predict: %d bytes for the field %s, which is %s%v and has %d", len(v), in.Name, in.DType, in.Shape, len(fields[i]))
			}
			copy(fields[i], v)
		}
		for name := range values {
			if !slices.ContainsFunc(m.inputs, func(in input) bool { return in.Name == name }) {
				return fmt.Errorf("predict: the network has no field %q", name)
			}
		}
		return nil
	}}
}

func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
