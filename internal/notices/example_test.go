package notices_test

import (
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/internal/notices"
)

func ExampleText() {
	title, _, _ := strings.Cut(notices.Text(), "\n")
	fmt.Println(title)
	// Output: What is in gotrain's programs besides gotrain, and the licences of it
}
