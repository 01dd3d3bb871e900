//go:build !linux

package telemetry

// Memory is not known on this system.
func Memory() (now, peak Value) { return Value{}, Value{} }
