//go:build !unix

package foreign

const nonblock = 0
