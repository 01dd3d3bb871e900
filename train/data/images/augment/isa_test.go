package augment

import (
	"strings"
	"testing"
)

// TestUnknownISA: a misspelt limit is an error, also where nothing is augmented: it limits the decoder, too.
func TestUnknownISA(t *testing.T) {
	for _, name := range append([]string{""}, isaNames...) {
		t.Setenv(envISA, name)
		if err := (Pipeline{}).Check(); err != nil {
			t.Error(err)
		}
	}
	t.Setenv(envISA, "avx3")
	if err := (Pipeline{}).Check(); err == nil || !strings.Contains(err.Error(), `unknown instruction set "avx3" in GOTRAIN_MAX_ISA`+"\nhint: use one of base,") {
		t.Error(err)
	}
}
