package recipes

import "reflect"

// MiB is a size in MiB, or Auto: the key then takes a number or "auto".
type MiB float64

// Auto stands for "auto" where a MiB is wanted. It is no number that a recipe may have.
const Auto MiB = -1

// autoWord is how a recipe writes Auto.
const autoWord = "auto"

var mibType = reflect.TypeFor[MiB]()

// takesAuto reports whether a field takes a number or "auto".
func (f *field) takesAuto() bool { return f.typ == mibType }
