package confusion

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"strconv"
)

// WritePNG draws the matrix: the darker a cell, the larger the part of the true class that was predicted as the column's. Cells have their number where there
// is room, rows and columns their names. The size adapts to the number of classes; of more than a few hundred only the pattern is left.
func (m *Matrix) WritePNG(out io.Writer) error {
	if len(m.names) == 0 {
		return fmt.Errorf("confusion: no classes to draw")
	}
	return png.Encode(out, m.draw())
}

// chart is the geometry of a picture.
type chart struct {
	cell, scale int // pixels of a cell, and of a pixel of a letter
	left, top   int // where the cells begin
	names       bool
}

const margin, longest = 16, 28

func (m *Matrix) chart() chart {
	n := len(m.names)
	c := chart{cell: min(max(2, 1400/n), 64), scale: 2}
	if c.cell < 18 {
		c.scale = 1
	}
	c.names = c.cell >= 9
	c.left, c.top = margin, margin
	line := height*c.scale + 6
	c.top += 2*line + 8 // title, and what columns are
	c.left += line
	if c.names {
		width := 0
		for _, name := range m.names {
			width = max(width, textWidth(short(name, longest), c.scale))
		}
		c.left += width + 8
		c.top += width + 8
	}
	return c
}

var (
	ink   = color.RGBA{33, 37, 41, 255}
	grid  = color.RGBA{222, 226, 230, 255}
	light = color.RGBA{255, 255, 255, 255}
)

// shade is the colour of a part of a row, from white to dark blue. Small parts are visible.
func shade(part float64) color.RGBA {
	if part <= 0 {
		return light
	}
	x := 0.08 + 0.92*part
	mix := func(a, b uint8) uint8 { return uint8(float64(a) + (float64(b)-float64(a))*x) }
	return color.RGBA{mix(255, 8), mix(255, 48), mix(255, 107), 255}
}

func (m *Matrix) draw() *image.RGBA {
	n, c := len(m.names), m.chart()
	size := n * c.cell
	title := fmt.Sprintf("accuracy %.2f %% of %d samples, %d classes", 100*m.Accuracy(), m.Total(), n)
	img := image.NewRGBA(image.Rect(0, 0, max(c.left+size, margin+textWidth(title, 2))+margin, c.top+size+margin))
	draw.Draw(img, img.Rect, image.NewUniform(light), image.Point{}, draw.Src)
	write(img, margin, margin, title, 2, false, ink)
	write(img, c.left, margin+height*2+8, "predicted", c.scale, false, ink)
	write(img, margin, c.top+min(size, textWidth("true", c.scale)), "true", c.scale, true, ink)
	for i, class := range m.Classes() {
		at := i*c.cell + (c.cell-height*c.scale)/2
		if c.names {
			name := short(m.names[i], longest)
			write(img, c.left-8-textWidth(name, c.scale), c.top+at, name, c.scale, false, ink)
			write(img, c.left+at, c.top-6, name, c.scale, true, ink)
		}
		for j := range n {
			m.cell(img, c, i, j, class.Samples)
		}
	}
	return img
}

// cell draws one cell: its colour, its border where cells are large enough, and its number where it fits.
func (m *Matrix) cell(img *image.RGBA, c chart, i, j, samples int) {
	n := m.At(i, j)
	fill := shade(part(n, samples))
	r := image.Rect(0, 0, c.cell, c.cell).Add(image.Pt(c.left+j*c.cell, c.top+i*c.cell))
	if c.cell >= 6 {
		draw.Draw(img, r, image.NewUniform(grid), image.Point{}, draw.Src)
		r.Max = r.Max.Sub(image.Pt(1, 1))
	}
	draw.Draw(img, r, image.NewUniform(fill), image.Point{}, draw.Src)
	text := strconv.Itoa(n)
	scale := c.scale
	if textWidth(text, scale) > c.cell-2 {
		scale = 1
	}
	if n == 0 || textWidth(text, scale) > c.cell-2 || c.cell < height*scale+2 {
		return
	}
	on := ink
	if part(n, samples) > 0.45 {
		on = light
	}
	write(img, r.Min.X+(c.cell-textWidth(text, scale)+scale)/2, r.Min.Y+(c.cell-height*scale)/2, text, scale, false, on)
}
