package resnet

import (
	"fmt"
	"strings"
)

// Recognise guesses from the names of parameters which depth they belong to: "ResNet50", or "" where they are none of these networks.
func Recognise(names []string) string {
	var has Config
	for _, name := range names {
		var stage, block int
		if n, _ := fmt.Sscanf(name, "layer%d.%d.", &stage, &block); n != 2 || stage < 1 || stage > len(has.Blocks) || block < 0 {
			continue
		}
		has.Blocks[stage-1] = max(has.Blocks[stage-1], block+1)
		has.Bottleneck = has.Bottleneck || strings.Contains(name, ".conv3.")
	}
	for depth, d := range depths {
		if d.blocks == has.Blocks && d.bottleneck == has.Bottleneck {
			return fmt.Sprintf("ResNet%d", depth)
		}
	}
	return ""
}
