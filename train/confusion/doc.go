// Package confusion counts which class a classifier takes for which, and shows it: as numbers by class, as a table, in CSV, and as a picture.
//
//	m := confusion.New([]string{"daisy", "rose", "tulip"})
//	m.Add(label, predicted)                       // once for each sample
//	m.Accuracy(); m.Classes()                     // overall, and recall, precision and F1 by class
//	err = m.WriteText(os.Stdout)                  // or WriteCSV, WritePNG
//
// Rows are the true classes, columns the predicted ones, as in scikit-learn's confusion_matrix; recall, precision and F1 are those of
// precision_recall_fscore_support with zero_division=0. The accuracy of a class is its recall: the part of its samples that are recognised.
package confusion
