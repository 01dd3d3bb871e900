//go:build !linux

package tcp

import (
	"errors"
	"net"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// supported refuses: the driver is made of Linux's system calls.
func supported() error {
	return errors.New("comm: tcp: this transport needs Linux, not " + runtime.GOOS + "\nhint: run all ranks on one machine, with transport = \"shm\"")
}

type message struct{ at, n int }

func (m *message) reset()                                       {}
func (m *message) add(address, int)                             {}
func (m *message) front() (address, int)                        { return 0, 0 }
func (m *message) take(int)                                     {}
func (m *message) send(int) (int, syscall.Errno)                { return 0, syscall.ENOSYS }
func (m *message) receive(int) (int, syscall.Errno)             { return 0, syscall.ENOSYS }
func receiveInto(int, unsafe.Pointer, int) (int, syscall.Errno) { return 0, syscall.ENOSYS }
func sendFrom(int, unsafe.Pointer, int) (int, syscall.Errno)    { return 0, syscall.ENOSYS }
func newBell() (int, error)                                     { return -1, syscall.ENOSYS }
func ring(int)                                                  {}
func silence(int)                                               {}
func unsent(int) int                                            { return 0 }
func setOptions(int, bool) (string, error)                      { return "", syscall.ENOSYS }
func mapMemory(n int) (whole, mem []byte, err error)            { b := make([]byte, n); return b, b, nil }
func unmapMemory([]byte)                                        {}
func processors() (set [16]uint64)                              { return set }
func duplicate(*net.TCPConn) (int, error)                       { return -1, syscall.ENOSYS }
func endStream(int)                                             {}
func closeFD(int)                                               {}
func poll([]unix.PollFd, int) int                               { return 0 }
func hungUp(int) bool                                           { return true }
func unread(int) int                                            { return 0 }
func processorsHere() int                                       { return 0 }
func yieldProcessor()                                           {}
