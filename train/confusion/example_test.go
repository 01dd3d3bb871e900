package confusion_test

import (
	"fmt"
	"os"

	"github.com/gotrain/gotrain/train/confusion"
)

// What a classifier takes for what.
func Example() {
	m := confusion.New([]string{"cat", "dog"})
	for _, x := range [][2]int{{0, 0}, {0, 1}, {1, 1}, {1, 1}} { // true, predicted
		if err := m.Add(x[0], x[1]); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(m.Accuracy(), m.Classes()[0].Recall, m.Classes()[1].Precision)
	if err := m.WriteCSV(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0.75 0.5 0.6666666666666666
	// true \ predicted,cat,dog
	// cat,1,1
	// dog,0,2
}
