// Package notices holds the licences of everything that is linked into gotrain's programs: other modules, Go's standard library, and bundled
// data. "gotrain version --notices" prints them, so a copied binary carries the notices that their authors require.
//
// "go test ./internal/notices -update" writes the text from the modules that the programs import; the test fails if one is missing.
package notices
