package augment

import (
	"fmt"
	"slices"
)

// Op is one operation on pixels.
type Op struct {
	Name string
	// Apply changes the pixels in place. What arg means is documented with the operation: a factor, degrees, pixels …
	Apply func(p *Pixels, s *Scratch, arg float64, fill [3]byte)
}

// ops is the registry of operations; each file registers its own in init.
var ops = map[string]Op{}

// Register adds an operation that policies can name.
func Register(o Op) {
	if _, twice := ops[o.Name]; twice || o.Name == "" || o.Apply == nil {
		panic(fmt.Sprintf("augment: operation %q is registered twice, or incomplete", o.Name))
	}
	ops[o.Name] = o
}

// Lookup finds an operation by its name.
func Lookup(name string) (Op, bool) {
	o, ok := ops[name]
	return o, ok
}

// Names lists the operations.
func Names() []string {
	var names []string
	for n := range ops {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
