// Package survey examines data sets before a training: how many samples there are, of which classes and sizes, which cannot be read, and which are the same.
//
//	r, err := survey.Examine(ctx, []survey.Set{{Name: "train", Source: train}, {Name: "val", Source: val}}, survey.Options{})
//	for _, b := range r.Broken() { … }
//	for _, d := range r.Duplicates { … } // a copy in another set, or with another label, is worse than one in the same set
//
// Pictures in files (package train/data/images) are decoded whole, so that damage anywhere is found, and their sizes, formats, means and standard deviations
// are those of the pictures as stored. Samples of other sources are loaded; the mean and standard deviation of a field image f32[C H W] are those of the values
// that the source gives.
//
// "gotrain data check" and "gotrain data stats" print what it finds.
package survey
