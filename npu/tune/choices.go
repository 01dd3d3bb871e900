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

// Without replaces algorithms that the device does not have for these ops, which are all of the network's, and returns the keys of those. What an earlier
// version of the same algorithm has computed its successor continues (npu.Successor), and everything else the direct algorithm.
func (c *Choices) Without(dev npu.Device, ops []npu.Op) (replaced []string) {
	for _, op := range ops {
		key := Key(op)
		a, has := c.Algorithms[key], npu.Algorithms(dev, op)
		if a == npu.Direct || slices.Contains(has, a) {
			continue
		}
		next, ok := npu.Successor(a)
		if !ok || !slices.Contains(has, next) {
			next = npu.Direct
		}
		c.Algorithms[key] = next
		if !slices.Contains(replaced, key) {
			replaced = append(replaced, key)
		}
	}
	return replaced
}

// Only is the part of the choices that has these keys.
func (c Choices) Only(keys []string) Choices {
	some := Choices{Algorithms: map[string]string{}}
	for _, key := range keys {
		if a, ok := c.Algorithms[key]; ok {
			some.Algorithms[key] = a
		}
	}
	return some
}

// common lists, by key, the algorithms that all ops of the key have, Direct first, and the first op of each key; keys are in the order of the ops.
func common(dev npu.Device, ops []npu.Op) (keys []string, names map[string][]string, first map[string]npu.Op) {
	names, first = map[string][]string{}, map[string]npu.Op{}
	for _, op := range ops {
		key, has := Key(op), npu.Algorithms(dev, op)
		if old, seen := names[key]; seen {
			names[key] = slices.DeleteFunc(slices.Clone(old), func(a string) bool { return !slices.Contains(has, a) })
			continue
		}
		keys, names[key], first[key] = append(keys, key), has, op
	}
	return keys, names, first
}

// Forced is every op's fastest algorithm of a family of names by its arithmetic: the first of the device's list that begins with the prefix. It measures
// nothing, so machines with the same library and instruction set agree.
func Forced(dev npu.Device, ops []npu.Op, prefix string) Choices {
	c := Choices{Algorithms: map[string]string{}}
	keys, names, _ := common(dev, ops)
	for _, key := range keys {
		for _, a := range names[key] {
			if a != npu.Direct && strings.HasPrefix(a, prefix) {
				c.Algorithms[key] = a
				break
			}
		}
	}
	return c
}

// Sentence says what was chosen: "winograd4-sqrt2 for 9, winograd2 for 1, direct for 2 of 12 distinct convolutions with a choice". Without a choice it is "".
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
