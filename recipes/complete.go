package recipes

import "strings"

// Completion is something that a shell may offer for an unfinished section.key=value.
type Completion struct {
	Text  string
	Doc   string // a line about it; may be empty
	Final bool   // the setting is whole with it
}

// Complete lists how an unfinished section.key=value may go on: keys, and behind the = the values that a key allows.
func Complete(word string) []Completion {
	var out []Completion
	key, value, has := strings.Cut(word, "=")
	if !has {
		for _, s := range schema {
			for _, f := range s.fields {
				if strings.HasPrefix(f.key(), key) {
					out = append(out, Completion{Text: f.key() + "=", Doc: firstSentence(f.doc)})
				}
			}
		}
		return out
	}
	f := byKey[key]
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

// values are those that a key allows, or the default as an example where there is no list.
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
