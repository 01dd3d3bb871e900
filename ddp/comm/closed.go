package comm

// Closed returns a channel that is closed already: Done of a handle that is complete.
func Closed() <-chan struct{} { return closed }

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
