package telemetry

import (
	"bytes"
	"sync"
	"syscall"
)

// Memory is the resident set of this process in bytes, now and at its peak. A value that the system does not provide is unknown. It allocates almost
// nothing (the path, for the system call), because it runs after every step.
func Memory() (now, peak Value) {
	fd, err := syscall.Open("/proc/self/status", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return Value{}, Value{}
	}
	defer syscall.Close(fd)
	buf := statusBuf.Get().(*[8192]byte)
	defer statusBuf.Put(buf)
	n, err := syscall.Read(fd, buf[:])
	if err != nil || n <= 0 {
		return Value{}, Value{}
	}
	return statusKB(buf[:n], rssKey), statusKB(buf[:n], peakKey)
}

var statusBuf = sync.Pool{New: func() any { return new([8192]byte) }} // the file is about 1.5 KB

var rssKey, peakKey = []byte("\nVmRSS:"), []byte("\nVmHWM:")

// statusKB parses a line such as "VmRSS:     1234 kB".
func statusKB(raw, key []byte) Value {
	i := bytes.Index(raw, key)
	if i < 0 {
		return Value{}
	}
	n, digits := int64(0), 0
	for _, c := range bytes.TrimLeft(raw[i+len(key):], " \t") {
		if c < '0' || c > '9' {
			break
		}
		n, digits = 10*n+int64(c-'0'), digits+1
	}
	if digits == 0 || digits > 15 {
		return Value{}
	}
	return Known(float64(n << 10))
}
