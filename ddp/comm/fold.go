package comm

// Folder is a Communicator whose sums are made in another order than that of ranks, or that is made of such ones.
type Folder interface {
	// Fold describes the order, equally on all ranks: where it differs, floating-point sums differ by rounding.
	Fold() string
}

// InRankOrder is the order of sums of a communicator that is no Folder.
const InRankOrder = "in the order of ranks"

// Fold describes in which order c sums. c may be nil for a rank that is alone.
func Fold(c Communicator) string {
	if f, ok := c.(Folder); ok {
		return f.Fold()
	}
	return InRankOrder
}
