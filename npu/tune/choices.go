package tune

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// Choices says how a network is computed where its device has a choice. The zero value is the device's default everywhere. It is plain data: ranks share
// it, and checkpoints keep it.
type Choices struct {
	// Algorithms has the algorithm by Key, also of ops for which the default has won.
	Algorithms map[string]string `json:"algorithms,omitempty"`
}

// Algorithm is the algorithm of an op.
func (c Choices) Algorithm(op npu.Op) string { return c.Algorithms[Key(op)] }

// Without drops algorithms that the device does not have for these ops, and returns the keys of those. A device without algorithms has none, for any op.
func (c *Choices) Without(dev npu.Device, ops []npu.Op) (dropped []string) {
	if _, ok := dev.(npu.Algorithmic); !ok {
		for key, a := range c.Algorithms {
			if a != npu.Direct {
				c.Algorithms[key] = npu.Direct
				dropped = append(dropped, key)
			}
		}
		return dropped
	}
	for _, op := range ops {
		key := Key(op)
		if a := c.Algorithms[key]; a != npu.Direct && !slices.Contains(npu.Algorithms(dev, op), a) {
			c.Algorithms[key] = npu.Direct
			dropped = append(dropped, key)
		}
	}
	return dropped
}

// Forced is every op's fastest algorithm of a family of names by its arithmetic: the first of the device's list that begins with the prefix. It measures
// nothing, so machines with the same library and instruction set agree.
func Forced(dev npu.Device, ops []npu.Op, prefix string) Choices {
	c := Choices{Algorithms: map[string]string{}}
	for _, op := range ops {
		for _, a := range npu.Algorithms(dev, op) {
			if a != npu.Direct && strings.HasPrefix(a, prefix) {
				c.Algorithms[Key(op)] = a
				break
			}
		}
	}
	return c
}

// Sentence says what was chosen: "winograd4 for 9, winograd2 for 1 and direct for 2 of 12 distinct convolutions". Without a choice it is "".
func (c Choices) Sentence() string {
	if len(c.Algorithms) == 0 {
		return ""
	}
	count := map[string]int{}
	for _, a := range c.Algorithms {
		count[a]++
	}
	var list []string
	for _, a := range slices.Sorted(maps.Keys(count)) {
		list = append(list, fmt.Sprintf("%s for %d", Name(a), count[a]))
	}
	plural := "s"
	if len(c.Algorithms) == 1 {
		plural = ""
	}
	return fmt.Sprintf("%s of %d distinct convolution%s with a choice", strings.Join(list, ", "), len(c.Algorithms), plural)
}

// Name is the name of an algorithm for people.
func Name(algorithm string) string {
	if algorithm == npu.Direct {
		return "direct"
	}
	return algorithm
}
