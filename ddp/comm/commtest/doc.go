// Package commtest is the suite that every transport must pass. A transport's test calls it with a function that makes groups:
//
//	func TestSuite(t *testing.T) {
//		commtest.Run(t, commtest.Transport{
//			New:  func(t *testing.T, n int) []comm.Communicator { … },
//			Kill: func(c comm.Communicator) { … },
//		})
//	}
//
// Results are compared with a simple twin that gathers the inputs of all ranks in one place and combines them in rank order; they
// must be equal bit by bit. Options of Transport describe device memory, calls that a transport cannot do, sums in an unknown order, and ranks that do not
// hear from all others.
//
// Slow wraps a Communicator so that a collective takes time in proportion to its bytes, to make overlap visible in tests.
package commtest
