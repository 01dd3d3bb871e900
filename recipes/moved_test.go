package recipes

import (
	"strings"
	"testing"
)

// TestMovedKeys: a recipe that an older version stored in a checkpoint holds both names, and the old one acted. A setting must use the new one.
func TestMovedKeys(t *testing.T) {
	r, err := Open("deit-s")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(r.String(), "drop_path = 0.1", "drop_path = 0.0", 1)
	old := strings.Replace(text, "[vit]\n", "[vit]\ndrop_path = 0.25\n", 1)
	if r, err = Decode(old, "old.toml"); err != nil || r.Model.DropPath != 0.25 || strings.Contains(r.String(), "\n[vit]\ndrop_path") {
		t.Fatalf("%v\n%s", err, r)
	}
	if _, err := Decode(strings.Replace(old, "0.25", "1.5", 1), "old.toml"); err == nil || !strings.Contains(err.Error(), "old.toml:") ||
		!strings.Contains(err.Error(), "model.drop_path") {
		t.Error(err)
	}
	if _, err := Decode(strings.Replace(old, "0.25", `"much"`, 1), "old.toml"); err == nil || !strings.Contains(err.Error(), "model.drop_path") {
		t.Error(err)
	}
	for _, set := range []string{"vit.drop_path=0.1", "vit.drop_pth=0.1"} {
		if _, err := Open("deit-s", set); err == nil || !strings.Contains(err.Error(), "did you mean model.drop_path?") {
			t.Error(set, err)
		}
	}
	_, err = Decode("[run]\nsteps = 1\n[vit]\ndrop_path = 0.1\n", "resnet.toml") // another family never used it
	if err == nil || !strings.Contains(err.Error(), "did you mean model.drop_path?") {
		t.Error(err)
	}
}
