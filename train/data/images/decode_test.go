package images

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/data/images/turbojpeg"
)

// zooFile is a row of testdata/zoo/manifest.json.
type zooFile struct {
	File      string
	Kind      string
	Note      string
	Width     int
	Height    int
	RGB       string    `json:"rgb_sha256"`
	Mean      []float64 `json:"rgb_mean"`
	PillowRGB string    `json:"pillow_rgb_sha256"`
	Pillow    string
	GoSays    string `json:"go_image_jpeg_1_26"`
}

func zoo(t testing.TB) []zooFile {
	t.Helper()
	raw, err := os.ReadFile("testdata/zoo/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []zooFile
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 48 {
		t.Fatalf("%d files in the manifest, want 48", len(all))
	}
	return all
}

func zooBytes(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/zoo", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// backends are those that this machine has.
func backends(t testing.TB) []Backend {
	if err := turbojpeg.Available(); err != nil {
		t.Logf("only Go's JPEG decoder is tested: %v", err)
		return []Backend{Go}
	}
	return []Backend{Turbo, Go}
}

func decodeAll(b Backend, raw []byte) (Picture, string, error) {
	var p Picture
	d, err := NewDecoder(b)
	if err != nil {
		return p, "", err
	}
	info, err := d.Header(raw)
	if err != nil {
		return p, "", err
	}
	warn, err := d.Decode(raw, info, 1, &p)
	return p, warn, err
}

func TestZoo(t *testing.T) {
	for _, b := range backends(t) {
		for _, z := range zoo(t) {
			t.Run(string(b)+"/"+z.File, func(t *testing.T) {
				p, warn, err := decodeAll(b, zooBytes(t, z.File))
				switch z.Kind {
				case "good":
					checkGood(t, b, z, p, warn, err)
				case "other": // told by content whatever the name; lossless, so equal to Pillow whatever the backend
					if err != nil {
						t.Fatal(err)
					}
					sizeIs(t, z, p)
					if z.File != "gray16.png" { // Pillow clips 16-bit grey to white
						checkSum(t, p, z.PillowRGB)
					}
				case "bad":
					checkBad(t, b, z, p, warn, err)
				default:
					t.Fatalf("unknown kind %q", z.Kind)
				}
			})
		}
	}
}

func checkGood(t *testing.T, b Backend, z zooFile, p Picture, warn string, err error) {
	if b == Go && strings.HasPrefix(z.GoSays, "error") {
		if err == nil || !strings.Contains(err.Error(), "hint: libjpeg-turbo") {
			t.Fatalf("image/jpeg is known to refuse this, got %v", err)
		}
		return
	}
	if err != nil || warn != "" {
		t.Fatalf("err %v, warning %q", err, warn)
	}
	sizeIs(t, z, p)
	if b == Turbo {
		want := z.RGB
		if want == "" {
			want = z.PillowRGB // CMYK
		}
		checkSum(t, p, want)
		return
	}
	// image/jpeg does not smooth chroma; means still agree within a level and a half.
	for c, want := range z.Mean {
		sum := 0.0
		for i := c; i < len(p.Pix); i += 3 {
			sum += float64(p.Pix[i])
		}
		if got := sum / float64(len(p.Pix)/3); math.Abs(got-want) > 1.5 {
			t.Errorf("channel %d: mean %.2f, want %.2f", c, got, want)
		}
	}
}

func sizeIs(t *testing.T, z zooFile, p Picture) {
	t.Helper()
	if p.W != z.Width || p.H != z.Height || len(p.Pix) != p.W*p.H*3 {
		t.Fatalf("%d x %d pixels in %d bytes, want %d x %d", p.W, p.H, len(p.Pix), z.Width, z.Height)
	}
}

func checkSum(t *testing.T, p Picture, want string) {
	t.Helper()
	sum := sha256.Sum256(p.Pix)
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("pixels have SHA-256 %s, want %s", got, want)
	}
}

// checkBad wants an error, but for the files of which a part can be read as Pillow reads them.
func checkBad(t *testing.T, b Backend, z zooFile, p Picture, warn string, err error) {
	switch {
	case z.File == "corrupt_scan.jpg": // all pixels are there; some are wrong
		if err != nil {
			t.Fatal(err)
		}
		sizeIs(t, z, p)
		if b == Turbo && warn == "" {
			t.Error("no warning")
		}
		if b == Turbo {
			checkSum(t, p, z.RGB)
		}
	case z.File == "missing_huffman.jpg" && b == Turbo: // the standard tables are put in, and they fit
		if err != nil {
			t.Fatal(err)
		}
		checkSum(t, p, z.RGB)
	default:
		if err == nil {
			t.Fatalf("no error (warning %q), %d x %d", warn, p.W, p.H)
		}
		if z.File == "huge_size.jpg" && !strings.Contains(err.Error(), "65535 x 65535") && !strings.Contains(err.Error(), "dimension is 65500") {
			t.Errorf("error does not tell the size: %v", err)
		}
	}
}

func TestGray16KeepsItsUpperBits(t *testing.T) {
	p, _, err := decodeAll(Go, zooBytes(t, "gray16.png"))
	if err != nil {
		t.Fatal(err)
	}
	low, high := 255, 0
	for i := 0; i < len(p.Pix); i += 3 {
		if p.Pix[i] != p.Pix[i+1] || p.Pix[i] != p.Pix[i+2] {
			t.Fatal("grey became colour")
		}
		low, high = min(low, int(p.Pix[i])), max(high, int(p.Pix[i]))
	}
	if low > 50 || high < 190 {
		t.Errorf("values from %d to %d", low, high)
	}
}

// A decoder that met a bad file must be as good as new for the next one.
func TestBadFilesLeaveNoTrace(t *testing.T) {
	for _, b := range backends(t) {
		d, err := NewDecoder(b)
		if err != nil {
			t.Fatal(err)
		}
		good := zooBytes(t, "seven_by_five.jpg")
		want, _, err := decodeAll(b, good)
		if err != nil {
			t.Fatal(err)
		}
		for _, z := range zoo(t) {
			raw := zooBytes(t, z.File)
			for _, cut := range [][]byte{raw, raw[:len(raw)/2], raw[:min(2, len(raw))]} {
				var p Picture
				if info, err := d.Header(cut); err == nil {
					d.Decode(cut, info, 1, &p)
				}
				info, err := d.Header(good)
				if err == nil {
					_, err = d.Decode(good, info, 1, &p)
				}
				if err != nil || !bytes.Equal(p.Pix, want.Pix) {
					t.Fatalf("%s: after %d bytes of %s a good file gives %v", b, len(cut), z.File, err)
				}
			}
		}
	}
}

func TestHeaderRefusesBeforeDecoding(t *testing.T) {
	for _, b := range backends(t) {
		d, err := NewDecoder(b)
		if err != nil {
			t.Fatal(err)
		}
		d.MaxPixels = 227*151 - 1
		if _, err := d.Header(zooBytes(t, "baseline_420.jpg")); err == nil || !strings.Contains(err.Error(), "227 x 151") {
			t.Errorf("%s: %v", b, err)
		}
		d.MaxPixels++
		if _, err := d.Header(zooBytes(t, "baseline_420.jpg")); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
}

func TestForeignFilesAreNamed(t *testing.T) {
	for raw, want := range map[string]string{
		"": "empty", "RIFF\x10\x00\x00\x00WEBPVP8 ": "WebP", "BM1234": "BMP", "II*\x00": "TIFF", "<html>": "text that begins with \"<html>\"",
		"\x00\x01\x02": "unknown data", "version https://git-lfs.github.com/spec/v1": "Git LFS", "\x00\x00\x00\x1cftypavif": "AVIF",
	} {
		_, _, err := decodeAll(Go, []byte(raw))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", raw, err, want)
		}
	}
}

func TestScaledDecode(t *testing.T) {
	if err := turbojpeg.Available(); err != nil {
		t.Skip(err)
	}
	d, err := NewDecoder(Turbo)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"baseline_420.jpg", "progressive_444.jpg", "gray.jpg", "cmyk_adobe.jpg", "one_row.jpg", "one_column.jpg",
		"seven_by_five.jpg", "one_pixel.jpg"} {
		raw := zooBytes(t, name)
		info, err := d.Header(raw)
		if err != nil {
			t.Fatal(err)
		}
		var full, small Picture
		if _, err := d.Decode(raw, info, 1, &full); err != nil {
			t.Fatal(err)
		}
		for _, denom := range []int{2, 4, 8} {
			if _, err := d.Decode(raw, info, denom, &small); err != nil {
				t.Fatalf("%s 1/%d: %v", name, denom, err)
			}
			if small.W != (info.W+denom-1)/denom || small.H != (info.H+denom-1)/denom {
				t.Errorf("%s 1/%d: %d x %d", name, denom, small.W, small.H)
			}
			// The scaled DCT keeps the mean, but for the border, which is most of a tiny picture.
			if a, b := mean(full), mean(small); math.Abs(a-b) > 4 && info.W > 7 || math.Abs(a-b) > 10 {
				t.Errorf("%s 1/%d: mean %.1f, full size %.1f", name, denom, b, a)
			}
		}
	}
}

func mean(p Picture) float64 {
	sum := 0
	for _, v := range p.Pix {
		sum += int(v)
	}
	return float64(sum) / float64(len(p.Pix))
}

// FuzzDecode: whatever the bytes, decoding ends with a picture of the announced size or an error.
func FuzzDecode(f *testing.F) {
	for _, z := range zoo(f) {
		raw := zooBytes(f, z.File)
		f.Add(raw)
		f.Add(raw[:len(raw)/3])
	}
	bs := backends(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, b := range bs {
			d, err := NewDecoder(b)
			if err != nil {
				t.Fatal(err)
			}
			d.MaxPixels = 1 << 20
			info, err := d.Header(raw)
			if err != nil {
				continue
			}
			var p Picture
			if _, err := d.Decode(raw, info, 1, &p); err == nil && (p.W != info.W || p.H != info.H || len(p.Pix) != 3*p.W*p.H) {
				t.Errorf("%s: header says %d x %d, picture has %d x %d", b, info.W, info.H, p.W, p.H)
			}
		}
	})
}

// Every file of the zoo, cut at many places and with bytes changed, must not crash, hang or run out of memory.
func TestDamagedZooNeverCrashes(t *testing.T) {
	for _, b := range backends(t) {
		d, err := NewDecoder(b)
		if err != nil {
			t.Fatal(err)
		}
		d.MaxPixels = 1 << 18
		var p Picture
		try := func(raw []byte) error {
			info, err := d.Header(raw)
			if err != nil {
				return err
			}
			_, err = d.Decode(raw, info, 1, &p)
			return err
		}
		for _, z := range zoo(t) {
			raw := zooBytes(t, z.File)
			for k := range 8 {
				err := try(raw[:len(raw)*k/8])
				if err == nil && z.Kind == "good" && !strings.HasPrefix(z.File, "trailing") && !strings.HasPrefix(z.File, "two_") {
					t.Errorf("%s: %s cut to %d/8 decodes without an error", b, z.File, k)
				}
				mad := append([]byte(nil), raw...)
				for i := k * 7; i < len(mad); i += 97 {
					mad[i] ^= byte(31*k + i)
				}
				_ = try(mad)
			}
		}
	}
}

func ExampleSniff() {
	raw, _ := os.ReadFile("testdata/zoo/png_named_jpg.jpg")
	fmt.Println(Sniff(raw))
	// Output: png
}
