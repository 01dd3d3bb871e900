// Package self is the communicator of a group of one rank: collectives copy if in and out differ and otherwise do
// nothing. It lets a program written for ddp run alone, with the same argument checks.
//
//	c := self.New()
//	defer c.Close()
package self
