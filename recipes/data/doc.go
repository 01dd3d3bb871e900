// Package data holds the data sets bundled with gotrain. Importing it for its side effect embeds them in the program (11 MB), where
// train/data.Locate finds them by name: a copied binary needs no other files.
//
//	import _ "github.com/gotrain/gotrain/recipes/data"
//
// README.md lists them with their licences.
package data
