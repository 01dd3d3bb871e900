package transcript_test

import (
	"fmt"
	"os/exec"

	"github.com/gotrain/gotrain/internal/transcript"
)

func ExampleBuffer() {
	var out transcript.Buffer
	cmd := exec.Command("echo", "ready")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		fmt.Println(err)
	}
	fmt.Print(out.String())
	// Output: ready
}
