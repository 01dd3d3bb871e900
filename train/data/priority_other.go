//go:build !linux

package data

// lowerPriority is nil where a priority belongs to a whole process.
var lowerPriority func(nice int)
