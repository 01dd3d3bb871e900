package recipes

import (
	"maps"
	"strings"
	"testing"
)

func TestDeviceOptions(t *testing.T) {
	for text, want := range map[string]map[string]string{"": nil, "a=1": {"a": "1"}, " a=1  b=c=d ": {"a": "1", "b": "c=d"}} {
		got, err := Train{DeviceOptions: text}.Options()
		if err != nil || !maps.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"a", "=1", "a=", "a=1 a=2"} {
		if _, err := (Train{DeviceOptions: text}).Options(); err == nil || !strings.Contains(err.Error(), "hint: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
