// Package self is the communicator of a group of one rank: collectives copy where in and out differ and are otherwise
// nothing. It lets a program that knows only ddp run alone, with the same checks of its arguments.
//
//	c := self.New()
//	defer c.Close()
package self
