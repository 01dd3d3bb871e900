package images

import (
	"image"
	"image/color"
)

// toRGB writes an image. Alpha is dropped, not blended: what torchvision's convert("RGB") does. The first frame of a GIF may be smaller than the picture; what
// it leaves open has the colour that is transparent, else the first of the palette, as in Pillow.
func toRGB(img image.Image, dst *Picture) {
	b := img.Bounds()
	if b != image.Rect(0, 0, dst.W, dst.H) {
		fill(dst, img)
	}
	b = b.Intersect(image.Rect(0, 0, dst.W, dst.H))
	for y := b.Min.Y; y < b.Max.Y; y++ {
		row := dst.Pix[(y*dst.W+b.Min.X)*3:][:b.Dx()*3]
		switch m := img.(type) {
		case *image.YCbCr:
			ycbcrRow(row, m, b.Min.X, y)
		case *image.Gray:
			src := m.Pix[m.PixOffset(b.Min.X, y):][:b.Dx()]
			for i, v := range src {
				row[3*i], row[3*i+1], row[3*i+2] = v, v, v
			}
		case *image.Gray16:
			src := m.Pix[m.PixOffset(b.Min.X, y):][:2*b.Dx()]
			for i := range b.Dx() {
				v := src[2*i]
				row[3*i], row[3*i+1], row[3*i+2] = v, v, v
			}
		case *image.CMYK: // image/jpeg has undone Adobe's inversion
			cmykToRGB(row, m.Pix[m.PixOffset(b.Min.X, y):][:4*b.Dx()], 0)
		case *image.RGBA: // only made for opaque pictures
			dropAlpha(row, m.Pix[m.PixOffset(b.Min.X, y):][:4*b.Dx()], 4, 1)
		case *image.NRGBA:
			dropAlpha(row, m.Pix[m.PixOffset(b.Min.X, y):][:4*b.Dx()], 4, 1)
		case *image.NRGBA64:
			dropAlpha(row, m.Pix[m.PixOffset(b.Min.X, y):][:8*b.Dx()], 8, 2)
		case *image.RGBA64:
			dropAlpha(row, m.Pix[m.PixOffset(b.Min.X, y):][:8*b.Dx()], 8, 2)
		case *image.Paletted:
			palettedRow(row, m, b.Min.X, y)
		default:
			for i := range b.Dx() {
				c := color.NRGBAModel.Convert(img.At(b.Min.X+i, y)).(color.NRGBA)
				row[3*i], row[3*i+1], row[3*i+2] = c.R, c.G, c.B
			}
		}
	}
}

func fill(dst *Picture, img image.Image) {
	var c color.NRGBA
	if m, ok := img.(*image.Paletted); ok && len(m.Palette) > 0 {
		open := m.Palette[0]
		for _, p := range m.Palette {
			if _, _, _, a := p.RGBA(); a == 0 {
				open = p
				break
			}
		}
		c = color.NRGBAModel.Convert(open).(color.NRGBA)
		if n, ok := open.(color.NRGBA); ok {
			c = n // Convert drops what is under transparency
		}
	}
	for i := 0; i+3 <= len(dst.Pix); i += 3 {
		dst.Pix[i], dst.Pix[i+1], dst.Pix[i+2] = c.R, c.G, c.B
	}
}

// underTransparency gives the transparent entry of a GIF's palette back the colour that image/gif took from it, where the frame has the global palette.
func underTransparency(m *image.Paletted, global color.Palette) {
	at := -1
	for i, c := range m.Palette {
		switch {
		case i >= len(global):
			return
		case c == global[i]:
		case c == color.RGBA{} && at < 0:
			at = i
		default:
			return
		}
	}
	if at >= 0 && len(m.Palette) == len(global) {
		r, g, b, _ := global[at].RGBA()
		m.Palette[at] = color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0}
	}
}

func dropAlpha(dst, src []byte, pixel, channel int) {
	for i := 0; len(dst) >= 3; i += pixel {
		dst[0], dst[1], dst[2] = src[i], src[i+channel], src[i+2*channel]
		dst = dst[3:]
	}
}

func ycbcrRow(dst []byte, m *image.YCbCr, x, y int) {
	for i := range len(dst) / 3 {
		yi, ci := m.YOffset(x+i, y), m.COffset(x+i, y)
		dst[3*i], dst[3*i+1], dst[3*i+2] = color.YCbCrToRGB(m.Y[yi], m.Cb[ci], m.Cr[ci])
	}
}

func palettedRow(dst []byte, m *image.Paletted, x, y int) {
	var table [256][3]byte
	for i, c := range m.Palette[:min(256, len(m.Palette))] {
		n, plain := c.(color.NRGBA) // Convert would drop what is under transparency
		if !plain {
			n = color.NRGBAModel.Convert(c).(color.NRGBA)
		}
		table[i] = [3]byte{n.R, n.G, n.B}
	}
	for i, v := range m.Pix[m.PixOffset(x, y):][:len(dst)/3] {
		copy(dst[3*i:3*i+3], table[v][:])
	}
}

// cmykToRGB multiplies the inks: rgb = (255-ink)·(255-k)/255, rounded as Pillow does. invert is xor-ed to the stored values.
func cmykToRGB(dst, src []byte, invert byte) {
	for i := range len(dst) / 3 {
		white := 255 - int(src[4*i+3]^invert)
		for c := range 3 {
			t := int(src[4*i+c]^invert)*white + 128
			dst[3*i+c] = byte(max(0, white-(t>>8+t)>>8))
		}
	}
}
