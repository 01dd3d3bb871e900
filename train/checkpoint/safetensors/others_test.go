package safetensors

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPickles(t *testing.T) {
	dir := t.TempDir()
	for name, head := range map[string]string{"a.pth": "PK\x03\x04rest of it", "b.safetensors": "PK\x03\x04rest",
		"c.pt": "\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(head), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenSet(path); !errors.Is(err, ErrPickle) || !strings.Contains(err.Error(), "hint: convert it to safetensors") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "b.safetensors")); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSet(dir); !errors.Is(err, ErrPickle) || !strings.Contains(err.Error(), "a.pth") {
		t.Errorf("the folder: %v", err)
	}
	if err := CheckPickle([]byte("{}"), "x.bin"); err != nil {
		t.Error(err)
	}
}

func TestWrapperHint(t *testing.T) {
	for in, want := range map[string]string{
		"module.conv1.weight module.fc.bias":    `"module."`,
		"_orig_mod.fc.bias":                     `"_orig_mod."`,
		"module._orig_mod.a module._orig_mod.b": `"module._orig_mod."`,
		"conv1.weight module.fc.bias":           "",
		"":                                      "",
		"modules.a":                             "",
	} {
		got := WrapperHint(strings.Fields(in))
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", in, got, want)
		}
	}
}
