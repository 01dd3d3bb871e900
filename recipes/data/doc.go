// Package data holds the data sets that come with gotrain. Importing it for its side effect puts them into the program, 11 MB, where
// train/data.Locate finds them by name: no file needs to lie beside a copied binary.
//
//	import _ "github.com/gotrain/gotrain/recipes/data"
//
// README.md lists them with their licences.
package data
