package notices

import _ "embed"

//go:embed THIRD_PARTY_NOTICES.txt
var text string

// Text returns the licences, one after the other, below a list of what they cover.
func Text() string { return text }
