package images

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images/augment"
)

// planar turns pictures of one size, stored plane by plane (C H W), into samples.
type planar struct {
	c, h, w    int // as stored
	outW, outH int
	transform  Transform
	given      Transform // nil: the whole
	norm       Norm
	fields     []data.Field
	luts       []*levels
	augment    augment.Pipeline
	canvases   pool[planarCanvas]
}

// planarCanvas is the memory for one picture.
type planarCanvas struct {
	canvas
	spare augment.Scratch
	whole Picture // the planes, interleaved
}

func newPlanar(c, h, w, outC int, t Transform, a augment.Pipeline, norm Norm) (*planar, error) {
	p := &planar{c: c, h: h, w: w, outW: w, outH: h, transform: t, given: t, augment: a}
	if outC != c && !(c == 1 && outC == 3) {
		return nil, fmt.Errorf("images: %d channels cannot become %d\nhint: only grey (1) can be converted to colour (3)", c, outC)
	}
	if t != nil {
		if err := t.Check(); err != nil {
			return nil, err
		}
		p.outW, p.outH = t.Size()
	} else {
		p.transform = ResizeCrop{Width: w, Height: h} // the whole
	}
	if c == 1 { // one plane has one normalisation, also three times
		norm.Mean[1], norm.Mean[2] = norm.Mean[0], norm.Mean[0]
		norm.Std[1], norm.Std[2] = norm.Std[0], norm.Std[0]
	}
	if err := errors.Join(checkSize(p.outW, p.outH, 0), norm.Check(), a.Check()); err != nil {
		return nil, err
	}
	p.fields = imageFields(outC, p.outH, p.outW)
	p.norm, p.luts = norm, planes(norm, outC)
	return p, nil
}

// Fields are image and label.
func (p *planar) Fields() []data.Field { return p.fields }

// draw renders the planes of one picture.
func (p *planar) draw(pix []byte, r *data.Rand, dst []byte) {
	can := p.canvases.get()
	if can == nil {
		can = new(planarCanvas)
	}
	defer p.canvases.put(can)
	v := p.transform.View(r, p.w, p.h)
	out := data.F32(dst)
	if !p.augment.Empty() {
		can.whole.interleave(pix, p.w, p.h, p.c)
		can.plan(p.w, p.h, 1, v, p.outW, p.outH)
		can.drawBytes(&can.whole, 1, v, p.outW, p.outH)
		p.augment.Pixels(r, &can.drawn, &can.spare)
		emitAll(&can.drawn, p.luts, out)
		p.augment.Values(r, out, len(p.luts), p.outH, p.outW)
		return
	}
	if p.c == 1 {
		can.grey = Picture{W: p.w, H: p.h, C: 1, Pix: pix}
		can.render(&can.grey, 1, v, p.outW, p.outH, p.luts, out)
		return
	}
	n, m := p.w*p.h, p.outW*p.outH
	for c := range p.c {
		can.grey = Picture{W: p.w, H: p.h, C: 1, Pix: pix[c*n:][:n]}
		can.render(&can.grey, 1, v, p.outW, p.outH, p.luts[c:c+1], out[c*m:][:m])
	}
}

// Preparation says how a picture becomes a sample where nothing is augmented, for predictions: see data.Preparing.
func (p *planar) Preparation() json.RawMessage {
	return preparationOf(p.given, p.fields[0].Shape[0], p.outH, p.outW, p.norm, false)
}

// interleave takes pixels that are stored plane by plane.
func (p *Picture) interleave(pix []byte, w, h, c int) {
	p.reset(w, h, c)
	n := w * h
	for k := range c {
		plane := pix[k*n:][:n]
		for i, v := range plane {
			p.Pix[i*c+k] = v
		}
	}
}
