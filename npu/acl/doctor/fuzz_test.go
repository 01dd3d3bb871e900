package doctor

import (
	"os"
	"strings"
	"testing"
)

// Outputs of commands and files of others may be anything.
func FuzzParse(f *testing.F) {
	if text, err := os.ReadFile("testdata/a3.machine"); err == nil {
		_, table, _ := strings.Cut(string(text), "npu-smi_info.txt --\n")
		f.Add(table)
	}
	f.Add("[7.0.0,7.7.99] >=7.6 0-3,8 | 0 0 | 1 | x | 2 |\nfe80::1 198.51.100.7")
	f.Fuzz(func(t *testing.T, s string) {
		for _, c := range parseSMI(s).Chips {
			_ = familyOf(c, nil)
		}
		within(s, s)
		list(s)
		if strings.ContainsAny(printable(s), "\x1b\n") {
			t.Error("a control character")
		}
		Mask(s, map[string]string{"host": "HOST"})
	})
}
