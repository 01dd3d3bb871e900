// Package notices holds the licences of everything that is linked into gotrain's programs: other modules, Go's own library, and bundled data.
// "gotrain version --notices" prints them, so a copied binary carries what their authors ask for.
//
// The text is written by "go test ./internal/notices -update" from the modules that the programs import; the test fails when one is missing.
package notices
