// Package transcript holds what a running process prints, for tests that read it meanwhile.
//
// A [Buffer] is the standard output and the standard error of a command, or the writer of a function that runs in another goroutine. A test waits for a text
// with [Buffer.WaitFor] instead of sleeping, and the failure shows all that was printed until then.
package transcript
