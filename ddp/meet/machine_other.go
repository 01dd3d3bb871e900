//go:build !linux

package meet

import (
	"fmt"
	"os"
)

func memory() []string { return []string{fmt.Sprintf("user %d", os.Getuid())} }

func namespace() []string { return nil }
