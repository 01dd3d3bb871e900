package launch

import (
	"strings"
	"testing"
)

func TestLastLines(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a\n": "a\n", "a\nb\n": "a\nb\n", "a\nb\nc\n": "b\nc\n", "\n\n\n": "\n\n", "a\n\nc\n": "\nc\n",
	} {
		if got := string(lastLines([]byte(text), 2)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	long := strings.Repeat("line\n", 1000)
	if got := lastLines([]byte(long), 20); len(got) != 100 {
		t.Errorf("%d bytes", len(got))
	}
}
