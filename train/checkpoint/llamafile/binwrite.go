package llamafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// writeBin writes version 0 of llama2.c's format.
func (e *export) writeBin(p *place) error {
	c := e.cfg
	if err := speaksBin(c); err != nil {
		return err
	}
	if c.NormEps != binEps {
		e.warn("llama2.c normalises with eps %g, but the model uses %g", binEps, c.NormEps)
	}
	if c.BOS != 1 || c.EOS != 2 {
		e.warn("llama2.c uses 1 and 2 as the BOS and EOS ids, but the model uses %d and %d", c.BOS, c.EOS)
	}
	name := BinFile
	if p.single {
		name = ""
	}
	return p.write(name, func(w io.Writer) error {
		vocab := c.Vocab
		if !c.Tied {
			vocab = -vocab // marks a separate classifier
		}
		var head []byte
		for _, v := range []int{c.Dim, c.Hidden, c.Layers, c.Heads, c.KVHeads, vocab, c.Context} {
			head = binary.LittleEndian.AppendUint32(head, uint32(int32(v)))
		}
		if _, err := w.Write(head); err != nil {
			return err
		}
		for _, r := range runs(c, 0) {
			var err error
			if r.name == tables {
				err = writeTables(w, c)
			} else {
				err = e.stream(w, r.param, safetensors.F32, true)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// speaksBin reports what llama2.c would compute differently.
func speaksBin(c llama.Config) error {
	var errs []error
	if c.Theta != binTheta {
		errs = append(errs, fmt.Errorf("llama2.c always rotates with theta %d, but the model uses %g", binTheta, c.Theta))
	}
	if c.Scaling.On() {
		errs = append(errs, errors.New("llama2.c does not scale the rotary embedding, but the model does"))
	}
	if c.Head()*c.Heads != c.Dim {
		errs = append(
			errs,
			fmt.Errorf("llama2.c requires heads of width dim/heads, but the model has %d heads of width %d in a width of %d", c.Heads, c.Head(), c.Dim),
		)
	}
	if len(errs) > 0 {
		errs = append(errs, errors.New("hint: export it as hf or meta, because llama2.c would compute other logits than this model"))
	}
	return errors.Join(errs...)
}

// writeTables writes cosines and sines, [context, head/2] each. Current readers skip them, early ones used them.
func writeTables(w io.Writer, c llama.Config) error {
	half := c.Head() / 2
	for _, f := range []func(float64) float64{math.Cos, math.Sin} {
		row := make([]byte, 0, 4*half)
		for pos := range c.Context {
			row = row[:0]
			for i := range half {
				a := float64(pos) * math.Pow(c.Theta, -2*float64(i)/float64(c.Head()))
				row = binary.LittleEndian.AppendUint32(row, math.Float32bits(float32(f(a))))
			}
			if _, err := w.Write(row); err != nil {
				return err
			}
		}
	}
	return nil
}
