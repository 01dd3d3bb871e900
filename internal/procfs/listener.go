package procfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Listener returns the process that listens on a TCP port, with its name; 0 if there is none, or if this user may not know. Only processes in the network
// namespace of this one count.
func Listener(port uint16) (pid int, name string) {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if b, err := os.ReadFile(table); err == nil {
			for _, inode := range listening(string(b), port) {
				sockets[fmt.Sprintf("socket:[%s]", inode)] = true
			}
		}
	}
	if len(sockets) == 0 {
		return 0, ""
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, l := range links {
		if to, err := os.Readlink(l); err != nil || !sockets[to] { // the process ended, or belongs to another user
			continue
		}
		dir := strings.Split(l, "/")[2]
		pid, _ = strconv.Atoi(dir)
		b, _ := os.ReadFile("/proc/" + dir + "/comm")
		return pid, strings.TrimSpace(string(b))
	}
	return 0, ""
}

// listening returns the inodes of the sockets in a table of /proc/net that listen on a port.
func listening(table string, port uint16) (inodes []string) {
	const state, listen = 3, "0A"
	for _, line := range strings.Split(table, "\n") {
		f := strings.Fields(line) // "0: 0100007F:1F90 00000000:0000 0A … uid timeout inode …"
		if len(f) < 10 || f[state] != listen {
			continue
		}
		_, hex, _ := strings.Cut(f[1], ":")
		if p, err := strconv.ParseUint(hex, 16, 16); err == nil && uint16(p) == port {
			inodes = append(inodes, f[9])
		}
	}
	return inodes
}
