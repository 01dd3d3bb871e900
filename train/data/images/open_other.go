//go:build !unix

package images

// mostOpen is how many shards a source keeps open.
func mostOpen() int { return maxOpen }
