// Package house holds the tests that keep the repository in order: which package may import which, where cgo is allowed, which modules are
// depended on, that every package has its manual and an example, and that nothing of the machine it was written on has stayed in a file.
//
// The package itself does nothing; docs/architecture.md explains the arrows.
package house
