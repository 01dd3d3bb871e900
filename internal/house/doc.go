// Package house holds the tests that keep the repository in order: which package may import which, where cgo is allowed, which modules it may
// depend on, that every package has a manual and an example, and that no file mentions the machine it was written on.
//
// The package has no code but tests; docs/architecture.md explains the arrows.
package house
