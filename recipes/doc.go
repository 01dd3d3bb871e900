// Package recipes holds the recipes that come with gotrain, and the typed, strict form that a recipe file is decoded into.
//
// # In short
//
//	r, err := recipes.Load("recipes/resnet50.toml", "train.dtype=bf16", "data.root=/srv/imagenet")
//	for _, w := range r.Warnings() { … }
//	fmt.Println(r)        // the whole recipe with every key filled in; decoding it gives the same recipe
//
// A name that is no file is looked up among the recipes in the binary: Load("quickstart").
//
// # Strict
//
// A recipe is TOML in sections ([run], [model], …). A key that does not exist, a value of the wrong type, a number out of range, two keys that
// contradict each other: each is a [Problem] with file, line and key, and a suggestion where the name is only misspelt. All of
// them come back at once as [Errors], whose exit code is 78.
//
// # Keys as data
//
// The schema is the struct [Recipe]: each field's tags hold its name, its documentation, its default, its unit and its range. The reference in
// docs/recipes.md is printed from them by [Reference], and a test keeps the list of keys from changing by accident. A default that
// depends on other keys is called auto; the recipe that comes back has the value in its place. What depends on the data or on the launcher (classes, steps of an
// epoch, ranks under mpirun) is filled in later and says so in its documentation.
//
// # Paths
//
// A path to read that begins with ./ or ../ counts from the folder of the recipe file; one on the command line (--set) counts from the working
// directory. Other relative names ("flowers") are looked for beside the recipe, in $GOTRAIN_DATA and among the bundled
// data sets. model.init_from is looked for beside the recipe, in the working directory, then among bundled data. Paths to write (run.output_dir) count from the working directory, because that is where people look for results.
package recipes
