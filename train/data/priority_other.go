//go:build !linux

package data

// lowerPriority is nil on systems where the priority applies to the whole process.
var lowerPriority func(nice int)
