package augment

func warpFast(p, old *Pixels, m matrix, fill [3]byte) bool { return false }
