package recipes

import "strings"

// Completion is a candidate that a shell may offer for an incomplete section.key=value.
type Completion struct {
	Text  string
	Doc   string // a one-line description; may be empty
	Final bool   // the setting is complete
}

// Complete lists the possible completions of an incomplete section.key=value: keys, and after the = the values that a key allows.
func Complete(word string) []Completion {
	var out []Completion
	key, value, has := strings.Cut(word, "=")
	if !has {
		for _, s := range schema() {
			for _, f := range s.fields {
				if strings.HasPrefix(f.key(), key) {
					out = append(out, Completion{Text: f.key() + "=", Doc: firstSentence(f.doc)})
				}
			}
		}
		return out
	}
	f := byKey()[key]
	if f == nil {
		return nil
	}
	for _, v := range f.values() {
		if strings.HasPrefix(v, value) {
			out = append(out, Completion{Text: key + "=" + v, Final: true})
		}
	}
	return out
}

// values lists the values that a key allows, or the default as an example if any value is allowed.
func (f *field) values() []string {
	switch {
	case f.oneOf != nil:
		return f.oneOf
	case f.typeName() == "true or false":
		return []string{"true", "false"}
	case f.def != "auto" && f.def != "":
		return []string{strings.ReplaceAll(f.def, " ", "")}
	}
	return nil
}

func firstSentence(doc string) string {
	for _, end := range []string{". ", "; ", ": "} {
		if s, _, cut := strings.Cut(doc, end); cut && len(s) > 8 {
			doc = s
		}
	}
	return strings.TrimSuffix(doc, ".")
}
