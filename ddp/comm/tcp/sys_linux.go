package tcp

import (
	"fmt"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// supported is nil where the transport works.
func supported() error { return nil }

// message is a list of spans of memory for one system call.
type message struct {
	hdr unix.Msghdr
	iov [maxSpans]struct{ base, n address } // as unix.Iovec
	at  int                                 // first span that is left
	n   int
}

// maxSpans are those of a batch: headers and payloads.
const maxSpans = 2 * maxBatch

func (m *message) reset() { m.at, m.n = 0, 0 }

func (m *message) add(p address, n int) {
	m.iov[m.n].base, m.iov[m.n].n = p, address(n)
	m.n++
}

// front is the first span that is left.
func (m *message) front() (address, int) { return m.iov[m.at].base, int(m.iov[m.at].n) }

// take removes n bytes from the front.
func (m *message) take(n int) {
	for n > 0 {
		v := &m.iov[m.at]
		if have := int(v.n); n >= have {
			n -= have
			m.at++
			continue
		}
		v.base, v.n = v.base+address(n), v.n-address(n)
		return
	}
}

// send and receive transfer what is possible without waiting. Their calls never block, so the scheduler need not know of them.
func (m *message) send(fd int) (int, syscall.Errno) {
	return m.do(unix.SYS_SENDMSG, fd, unix.MSG_NOSIGNAL)
}

// A result of 0 without an error is the end of the stream.
func (m *message) receive(fd int) (int, syscall.Errno) { return m.do(unix.SYS_RECVMSG, fd, 0) }

func (m *message) do(nr uintptr, fd int, flags uintptr) (int, syscall.Errno) {
	m.hdr.Iov = (*unix.Iovec)(unsafe.Pointer(&m.iov[m.at]))
	m.hdr.SetIovlen(m.n - m.at)
	for {
		n, _, e := syscall.RawSyscall(nr, uintptr(fd), uintptr(unsafe.Pointer(&m.hdr)), flags|unix.MSG_DONTWAIT)
		if e != syscall.EINTR {
			return int(n), e
		}
	}
}

// receiveInto is receive for one span.
func receiveInto(fd int, p unsafe.Pointer, n int) (int, syscall.Errno) {
	for {
		k, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(p), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
		if e != syscall.EINTR {
			return int(k), e
		}
	}
}

// sendFrom is send of one span.
func sendFrom(fd int, p unsafe.Pointer, n int) (int, syscall.Errno) {
	for {
		k, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(p), uintptr(n), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if e != syscall.EINTR {
			return int(k), e
		}
	}
}

// newBell makes a descriptor that becomes readable when it is rung.
func newBell() (int, error) { return unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC) }

func ring(fd int) {
	one := [8]byte{1}
	unix.Write(fd, one[:]) // it fails only if it is rung already
}

func silence(fd int) {
	var b [8]byte
	unix.Read(fd, b[:])
}

// unsent is the number of bytes that the kernel has not delivered.
func unsent(fd int) int {
	n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}

// duplicate gives a descriptor of the same connection that Go's poller does not watch.
func duplicate(conn *net.TCPConn) (fd int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	var failed error
	err = raw.Control(func(of uintptr) { fd, failed = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) })
	if err == nil {
		err = failed
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	return fd, err
}

func endStream(fd int) { _ = unix.Shutdown(fd, unix.SHUT_WR) }

func closeFD(fd int) {
	if fd >= 0 {
		_ = unix.Close(fd)
	}
}

// poll waits until a descriptor is ready, or for ms milliseconds.
func poll(fds []unix.PollFd, ms int) int {
	n, err := unix.Poll(fds, ms)
	if err != nil {
		return 0
	}
	return n
}

// yieldProcessor lets another thread that waits for this processor run first.
func yieldProcessor() { syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// unread is the number of bytes that have come and were not read.
func unread(fd int) int {
	n, err := unix.IoctlGetInt(fd, unix.SIOCINQ)
	if err != nil {
		return 0
	}
	return n
}

// hungUp reports that the other end has closed too, or is gone: nothing that is sent matters any more.
func hungUp(fd int) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd)}}
	return poll(fds[:], 0) > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}

// Options of a connection: how long unacknowledged data may stay so, and how often an idle one is probed. Together a dead network is noticed in 4 seconds,
// idle or not.
const (
	userTimeout = 4000 // ms
	probeAfter  = 1    // s
	probes      = 3
)

// setOptions prepares a connection and returns the name of its congestion control.
func setOptions(fd int, local bool) (congestion string, err error) {
	for _, o := range []struct {
		level, name, value int
		what               string
	}{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1, "TCP_NODELAY"},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1, "SO_KEEPALIVE"},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, probeAfter, "TCP_KEEPIDLE"},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, probeAfter, "TCP_KEEPINTVL"},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, probes, "TCP_KEEPCNT"},
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, userTimeout, "TCP_USER_TIMEOUT"},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return "", fmt.Errorf("%s: %w", o.what, err)
		}
	}
	if local { // 10 to 35 % faster than bbr without a network in between; not every system allows it
		_ = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic")
	}
	congestion, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		return "", fmt.Errorf("TCP_CONGESTION: %w", err)
	}
	return congestion, nil
}

const hugeBytes = 2 << 20

// mapMemory gets zeroed memory outside the Go heap, in huge pages if the kernel grants them.
func mapMemory(n int) (whole, mem []byte, err error) {
	size := n
	if n >= hugeBytes {
		size += hugeBytes
	}
	whole, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, err
	}
	mem = whole[:n:n]
	if n >= hugeBytes {
		at := int(-uintptr(unsafe.Pointer(&whole[0])) & (hugeBytes - 1))
		mem = whole[at : at+n : at+n]
		_ = unix.Madvise(whole, unix.MADV_HUGEPAGE) // slower without
	}
	return whole, mem, nil
}

func unmapMemory(whole []byte) { _ = unix.Munmap(whole) }

// processors is the set of those that this process may use.
func processors() (set [16]uint64) {
	var s unix.CPUSet
	if unix.SchedGetaffinity(0, &s) == nil {
		for cpu := range 64 * len(set) {
			if s.IsSet(cpu) {
				set[cpu/64] |= 1 << (cpu % 64)
			}
		}
	}
	return set
}

// processorsHere is the number of those that the machine, or the container, has: the first process is not bound to some of them.
func processorsHere() int {
	var s unix.CPUSet
	if unix.SchedGetaffinity(1, &s) != nil {
		return 0
	}
	return s.Count()
}
