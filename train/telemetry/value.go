package telemetry

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Value is a number that may be unknown. The zero Value is unknown.
type Value struct {
	X  float64
	OK bool
}

// Known is a known number; it may be NaN, as a loss can be.
func Known(x float64) Value { return Value{x, true} }

// Seconds is a known duration.
func Seconds(d time.Duration) Value { return Known(d.Seconds()) }

// Finite reports whether the value is known and finite.
func (v Value) Finite() bool { return v.OK && !math.IsNaN(v.X) && !math.IsInf(v.X, 0) }

// Times returns the value multiplied by a factor.
func (v Value) Times(k float64) Value { v.X *= k; return v }

// String formats five significant digits, or "-".
func (v Value) String() string { return string(v.general(nil)) }

func (v Value) general(b []byte) []byte { return v.append(b, 'g', 5, "") }

// append adds the number with a unit, or "-" without one.
func (v Value) append(b []byte, format byte, precision int, unit string) []byte {
	if !v.OK {
		return append(b, '-')
	}
	return append(strconv.AppendFloat(b, v.X, format, precision, 64), unit...)
}

// MarshalJSON writes null for an unknown value, and "NaN", "+Inf" or "-Inf" for numbers that JSON lacks.
func (v Value) MarshalJSON() ([]byte, error) {
	switch {
	case !v.OK:
		return []byte("null"), nil
	case !v.Finite():
		return []byte(`"` + strconv.FormatFloat(v.X, 'g', -1, 64) + `"`), nil
	}
	return json.Marshal(v.X)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (v *Value) UnmarshalJSON(raw []byte) error {
	*v = Value{}
	if string(raw) == "null" {
		return nil
	}
	if len(raw) > 0 && raw[0] == '"' {
		x, err := strconv.ParseFloat(string(raw[1:len(raw)-1]), 64)
		*v = Known(x)
		return err
	}
	v.OK = true
	return json.Unmarshal(raw, &v.X)
}
