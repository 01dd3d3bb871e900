package turbojpeg

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func zoo(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("../testdata/zoo/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestHeaderTellsColours(t *testing.T) {
	d, err := New()
	if err != nil {
		t.Skip(err)
	}
	defer d.Close()
	for name, want := range map[string]Header{
		"baseline_420.jpg": {227, 151, YCbCr}, "gray.jpg": {227, 151, Gray}, "cmyk_adobe.jpg": {227, 151, CMYK}, "rgb_adobe.jpg": {227, 151, RGB},
	} {
		if got, err := d.Header(zoo(t, name)); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
}

func TestDecodeRefusesWrongArguments(t *testing.T) {
	d, err := New()
	if err != nil {
		t.Skip(err)
	}
	raw := zoo(t, "gray.jpg")
	h, err := d.Header(raw)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, h.Width*h.Height*3)
	for name, err := range map[string]error{
		"small memory": second(d.Decode(raw, h, 1, dst[1:])), "scale": second(d.Decode(raw, h, 3, dst)), "no data": second(d.Decode(nil, h, 1, dst)),
		"forged size": second(d.Decode(raw, Header{Width: -1, Height: -1}, 1, nil)),
	} {
		if err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if _, err := d.Decode(raw, h, 1, dst); err != nil {
		t.Errorf("a right call afterwards: %v", err)
	}
	// A header that belongs to another picture must not write beyond dst.
	big := Header{Width: 30, Height: 20, Color: YCbCr}
	if _, err := d.Decode(raw, big, 1, make([]byte, 30*20*3)); err == nil {
		t.Log("scaled to fit")
	}
	d.Close()
	d.Close()
	if _, err := d.Header(raw); err == nil {
		t.Error("a closed decompressor works")
	}
}

func second(_ string, err error) error { return err }

// The library is loaded once a process, so each setting gets a process.
func TestLibraryCanBeNamed(t *testing.T) {
	if v := os.Getenv("GOTRAIN_TEST_TURBOJPEG"); v != "" {
		_, err := New()
		if err == nil || !strings.Contains(err.Error(), v) {
			t.Errorf("%v, want %q in it", err, v)
		}
		return
	}
	if err := Available(); err != nil {
		t.Skip(err)
	}
	for value, want := range map[string]string{"off": "disabled by", "/nowhere/libjpeg.so": "/nowhere/libjpeg.so", "libc.so.6": "lacks functions"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLibraryCanBeNamed$")
		cmd.Env = append(os.Environ(), LibraryVar+"="+value, "GOTRAIN_TEST_TURBOJPEG="+want)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", value, err, out)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	d, err := New()
	if err != nil {
		b.Skip(err)
	}
	raw := zoo(b, "baseline_420.jpg")
	h, _ := d.Header(raw)
	dst := make([]byte, h.Width*h.Height*3)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Decode(raw, h, 1, dst); err != nil {
			b.Fatal(err)
		}
	}
}
