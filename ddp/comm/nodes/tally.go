package nodes

// The control carries one number of each rank to all others. It has room for two counts, so that a rank that is late in a second group, which Branch
// makes, can be named too: the calls of the first group in the lower half, those of its first branch in the upper. Both wrap around; what is compared
// is never far apart.
const tallyBits = 31

const tallyMask = 1<<tallyBits - 1

// with returns the number with another count of a group.
func withTally(number int64, branch bool, calls int64) int64 {
	calls &= tallyMask
	if branch {
		return number&tallyMask | calls<<tallyBits
	}
	return number&^tallyMask | calls
}

// behind reports whether a rank whose control number is this has issued fewer calls of a group.
func behind(number int64, branch bool, calls int64) bool {
	if branch {
		number >>= tallyBits
	}
	return (calls-number)&tallyMask != 0 && (calls-number)&tallyMask <= tallyMask/2
}
