// Package procfs reads what Linux tells about processes in /proc. On systems without /proc every process is unknown.
package procfs
