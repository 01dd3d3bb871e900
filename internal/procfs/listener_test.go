package procfs

import (
	"net"
	"os"
	"runtime"
	"slices"
	"testing"
)

func TestListening(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 100 0 0 10 0
   2: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4713 1 0
   3: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4714 1
   4: broken`
	if got := listening(table, 8080); !slices.Equal(got, []string{"4711", "4713"}) {
		t.Error(got)
	}
}

func TestListener(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	if pid, name := Listener(port); pid != os.Getpid() || name == "" {
		t.Errorf("process %d (%s), want %d", pid, name, os.Getpid())
	}
	l.Close()
	if pid, name := Listener(port); pid != 0 {
		t.Errorf("after Close: process %d (%s)", pid, name)
	}
}
