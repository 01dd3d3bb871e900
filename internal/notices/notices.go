package notices

import _ "embed"

//go:embed THIRD_PARTY_NOTICES.txt
var text string

// Text is the licences, one after the other, below a list of what they are for.
func Text() string { return text }
