// Package recipes holds the recipes that come with gotrain, and the typed, strict form that a recipe file is decoded into.
//
// # In short
//
//	r, err := recipes.Load("recipes/resnet50.toml", "train.dtype=bf16", "data.root=/srv/imagenet")
//	for _, w := range r.Warnings() { … }
//	fmt.Println(r)        // the whole recipe with every key filled in; decoding it gives the same recipe
//
// If no file has the given name, Load looks it up among the recipes in the binary: Load("quickstart").
//
// # Strict
//
// A recipe is TOML in sections ([run], [model], …). A key that does not exist, a value of the wrong type, a number out of range, two keys that
// contradict each other: each is a [Problem] with file, line and key, and a suggestion if the name looks misspelt. All problems are
// returned together as [Errors], whose exit code is 78.
//
// # Keys as data
//
// The schema is the struct [Recipe]: each field's tags hold its name, its documentation, its default, its unit and its range. The reference in
// docs/recipes.md is generated from them by [Reference], and a test keeps the list of keys from changing by accident. A default that
// depends on other keys is called auto; Load replaces it with its value. Values that depend on the data or on the launcher (classes, steps per
// epoch, ranks under mpirun) are filled in later, as their documentation notes.
//
// # Paths
//
// An input path that begins with ./ or ../ is relative to the folder of the recipe file; on the command line (--set) it is relative to the working
// directory. Other relative names ("flowers") are searched next to the recipe, in $GOTRAIN_DATA and among the bundled data sets. model.init_from is
// searched next to the recipe, in the working directory, then among the bundled data. Output paths (run.output_dir) are relative to the working
// directory, because that is where users look for results.
package recipes
