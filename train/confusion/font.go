package confusion

import (
	"image"
	"image/color"
	"strings"
)

// glyphs are the printable characters of ASCII, 5 columns of 7 pixels each, the uppermost pixel in the lowest bit.
const glyphs = "" +
	"0000000000" + "00005f0000" + "0007000700" + "147f147f14" + "242a7f2a12" + "2313086462" + "3649552250" + "0005030000" + // space to '
	"001c224100" + "0041221c00" + "082a1c2a08" + "08083e0808" + "0050300000" + "0808080808" + "0060600000" + "2010080402" + // ( to /
	"3e5149453e" + "00427f4000" + "4261514946" + "2141454b31" + "1814127f10" + "2745454539" + "3c4a494930" + "0171090503" + // 0 to 7
	"3649494936" + "064949291e" + "0036360000" + "0056360000" + "0008142241" + "1414141414" + "4122140800" + "0201510906" + // 8 to ?
	"324979413e" + "7e1111117e" + "7f49494936" + "3e41414122" + "7f4141221c" + "7f49494941" + "7f09090101" + "3e41415132" + // @ to G
	"7f0808087f" + "00417f4100" + "2040413f01" + "7f08142241" + "7f40404040" + "7f0204027f" + "7f0408107f" + "3e4141413e" + // H to O
	"7f09090906" + "3e4151215e" + "7f09192946" + "4649494931" + "01017f0101" + "3f4040403f" + "1f2040201f" + "7f2018207f" + // P to W
	"6314081463" + "0304780403" + "6151494543" + "00007f4141" + "0204081020" + "41417f0000" + "0402010204" + "4040404040" + // X to _
	"0001020400" + "2054545478" + "7f48444438" + "3844444420" + "384444487f" + "3854545418" + "087e090102" + "081454543c" + // ` to g
	"7f08040478" + "00447d4000" + "2040443d00" + "007f102844" + "00417f4000" + "7c04180478" + "7c08040478" + "3844444438" + // h to o
	"7c14141408" + "081414187c" + "7c08040408" + "4854545420" + "043f444020" + "3c4040207c" + "1c2040201c" + "3c4030403c" + // p to w
	"4428102844" + "0c5050503c" + "4464544c44" + "0008364100" + "00007f0000" + "0041360800" + "0804081008" // x to ~

// letter sizes in pixels of a glyph, with the space after it
const advance, height = 6, 7

// plain replaces what the font lacks.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '…' {
			return '.'
		}
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// textWidth is the width of a text in pixels.
func textWidth(s string, scale int) int { return len(plain(s)) * advance * scale }

// write draws a text with its upper left corner at (x, y). Upright text runs upwards from there, and its upper left corner is on the lower left.
func write(img *image.RGBA, x, y int, s string, scale int, upright bool, c color.Color) {
	for i, r := range plain(s) {
		code := glyphs[int(r-' ')*10:][:10]
		for col := range 5 {
			bits := hex(code[2*col])<<4 | hex(code[2*col+1])
			for row := range height {
				if bits>>row&1 == 0 {
					continue
				}
				along, down := (i*advance+col)*scale, row*scale
				at := image.Pt(x+along, y+down)
				if upright {
					at = image.Pt(x+down, y-along-scale)
				}
				for dy := range scale {
					for dx := range scale {
						img.Set(at.X+dx, at.Y+dy, c)
					}
				}
			}
		}
	}
}

func hex(c byte) int {
	if c >= 'a' {
		return int(c-'a') + 10
	}
	return int(c - '0')
}
