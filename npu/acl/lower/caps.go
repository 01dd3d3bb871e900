package lower

import (
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/npu/acl/abi"
)

// Family is a generation of devices.
type Family uint8

// The generations.
const (
	Unknown Family = iota
	A910           // first generation, refused
	A2             // Ascend910B1…B4
	A3             // Ascend910_93xx
	A950           // Ascend950
)

// String returns the name that documents use.
func (f Family) String() string {
	return [...]string{"unknown", "910", "A2", "A3", "950"}[f]
}

// FamilyOf tells the generation from what aclrtGetSocName returns.
func FamilyOf(soc string) Family {
	s := strings.ToLower(soc)
	switch {
	case strings.HasPrefix(s, "ascend910_93"):
		return A3
	case strings.HasPrefix(s, "ascend910b") && len(s) > len("ascend910b"): // the plain name is of the first generation
		return A2
	case strings.HasPrefix(s, "ascend950"), strings.HasPrefix(s, "ascend910_95"):
		return A950
	case strings.HasPrefix(s, "ascend910"):
		return A910
	}
	return Unknown
}

// Version is a release of CANN.
type Version struct{ Major, Minor int }

// AtLeast reports whether v is major.minor or later.
func (v Version) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// String returns "8.1".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Caps is what a device and its CANN can do, and what the user allows.
type Caps struct {
	SoC     string // as aclrtGetSocName returns it
	Family  Family
	Version Version
	// Symbols reports whether the libraries export an operator; nil: all that have a header in CANN 8.1, and RotaryPositionEmbedding.
	Symbols func(op string) bool
	// HF32 allows matrix products and convolutions of f32 with about 13 bits instead of 24.
	HF32 bool
	// Exact asks that an f32 result of a product of 16-bit operands is never rounded to 16 bits, at the price of speed where CANN lacks the
	// operator (before 9.0).
	Exact bool
	// Logits is how many bytes of logits linear cross-entropy computes at a time; 0: 256 MiB.
	Logits int64
}

// Has reports whether the operator can be called.
func (c Caps) Has(op string) bool {
	o, ok := abi.Find(op)
	if !ok {
		return false
	}
	if c.Symbols == nil {
		return o.Header != "" || op == "RotaryPositionEmbedding"
	}
	return c.Symbols(op)
}
