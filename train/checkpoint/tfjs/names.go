package tfjs

import "fmt"

// depths are the numbers of blocks in the four stages of ResNet-50.
var depths = [4]int{3, 4, 6, 3}

// pair is a convolution with the batch norm after it, by its names here and in Keras.
type pair struct {
	conv, norm           string
	kerasConv, kerasNorm string
	kernel               int // width and height
}

// pairs lists all 53 in the order of the network.
func pairs() []pair {
	out := []pair{{"conv1", "bn1", "conv1", "bn_conv1", 7}}
	for s, n := range depths {
		for i := range n {
			here := fmt.Sprintf("layer%d.%d.", s+1, i)
			there := fmt.Sprintf("%d%c_branch", s+2, 'a'+i)
			for j, branch := range []string{"2a", "2b", "2c"} {
				p := pair{fmt.Sprintf("%sconv%d", here, j+1), fmt.Sprintf("%sbn%d", here, j+1), "res" + there + branch, "bn" + there + branch, 1}
				if j == 1 {
					p.kernel = 3
				}
				out = append(out, p)
			}
			if i == 0 {
				out = append(out, pair{here + "downsample.0", here + "downsample.1", "res" + there + "1", "bn" + there + "1", 1})
			}
		}
	}
	return out
}
