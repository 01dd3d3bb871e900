package house

import (
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the longest line that reviewers see whole, side by side with its former version.
const maxColumns = 160

// tableRow matches what reads better as one line: a row of a table in Markdown or of a literal, an expected line of a log, and a struct tag.
var tableRow = regexp.MustCompile("^\\s*(\\|.*|\\{.*\\},?|[\"`].*,|(// )?\\[Node .*|.*`[a-z]+:\".*`.*)$")

// Long lines hide what stands at their end.
func TestLineLength(t *testing.T) {
	files(t, func(name string, text []byte) {
		switch path.Ext(name) {
		case ".go", ".c", ".h", ".sh", ".py", ".md", ".yaml", ".sbatch", ".service":
		default:
			return
		}
		for i, line := range strings.Split(string(text), "\n") {
			if n := utf8.RuneCountInString(line); n > maxColumns && !tableRow.MatchString(line) {
				t.Errorf("%s:%d: %d columns, want at most %d", name, i+1, n, maxColumns)
			}
		}
	})
}
