package remote

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// stderr keeps the last lines that ssh and the agent print as errors.
type stderr struct {
	mu    sync.Mutex
	lines []string
	done  chan struct{}
}

func newStderr(r io.ReadCloser) *stderr {
	s := &stderr{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer r.Close()
		in := bufio.NewReaderSize(r, 4096)
		for {
			b, _, err := in.ReadLine()
			if text := strings.TrimSpace(printable(b)); text != "" {
				s.mu.Lock()
				s.lines = append(s.lines[max(0, len(s.lines)-19):], text)
				s.mu.Unlock()
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

// text is what was said.
func (s *stderr) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "; ")
}

// wait waits for the end, but not for a process that keeps the pipe open.
func (s *stderr) wait() {
	select {
	case <-s.done:
	case <-time.After(patience / 10):
	}
}

// printable is text without control characters.
func printable(b []byte) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' {
			return ' '
		}
		if !strconv.IsPrint(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(string(b), "?"))
}

// hinted adds what to do about an error of ssh.
func hinted(err error) error {
	text := err.Error()
	if strings.Contains(text, "\nhint: ") {
		return err
	}
	for _, h := range []struct{ says, hint string }{
		{"Permission denied", "ssh must work without a password: ssh-copy-id HOST, or give a key with --ssh-key"},
		{"Host key verification failed", "log in once with ssh, or put the host's key into ~/.ssh/known_hosts"},
		{"REMOTE HOST IDENTIFICATION HAS CHANGED", "the host has another key than before: if that is right, ssh-keygen -R HOST"},
		{"resolve hostname", "the name is unknown here: use the address, or add it to /etc/hosts"},
		{"not known", "the name is unknown here: use the address, or add it to /etc/hosts"},
		{"Connection refused", "is sshd running there, and on that port? --ssh-port gives another"},
		{"Connection timed out", "the host is down, or a firewall drops the connection"},
		{"No route to host", "the host is down, or in a network that this one has no route to"},
		{"not found", "hcclrun must be at the same path on every host: install it there, or send it with --copy"},
		{"No such file", "hcclrun must be at the same path on every host: install it there, or send it with --copy"},
		{"Exec format error", "the host has another processor: install hcclrun for it at the same path"},
		{"exit status 255", "this is what ssh, and most commands like it, return when they cannot reach the host or log in: try by hand that command with " +
			"the host and true"},
	} {
		if strings.Contains(text, h.says) {
			return fmt.Errorf("%w\nhint: %s", err, h.hint)
		}
	}
	return err
}

// hintedLost is hinted for a channel that worked: what its program wrote on the way, about a locale or a file, is not the reason.
func hintedLost(err error) error {
	if text := err.Error(); strings.Contains(text, "\nhint: ") || !strings.Contains(text, "exit status 255") {
		return err
	}
	return fmt.Errorf("%w\nhint: the connection to the host broke: look at the network, at the host, and at sshd's log there", err)
}
