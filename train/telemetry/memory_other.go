//go:build !linux

package telemetry

// Memory is unknown on this system.
func Memory() (now, peak Value) { return Value{}, Value{} }
