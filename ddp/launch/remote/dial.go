package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/ddp/launch"
)

// sshOptions make ssh fail instead of asking, and notice the end of the network.
var sshOptions = []string{"-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=4"}

// needsCopy is what the remote shell says if the program was not sent yet.
const needsCopy = "gotrain: the program is not here yet"

// argv is the command that runs words on the host. A script is one word.
func (t Target) argv(words ...string) []string {
	if len(t.Rsh) > 0 {
		if !joins(t.Rsh[0]) {
			return append(append(t.Rsh[:len(t.Rsh):len(t.Rsh)], t.dest()), words...)
		}
		return append(t.Rsh[:len(t.Rsh):len(t.Rsh)], t.dest(), quote(words))
	}
	args := append([]string{"ssh"}, sshOptions...)
	port := t.Host.Port
	if port == 0 {
		port = t.Port
	}
	if port != 0 {
		args = append(args, "-p", strconv.Itoa(port))
	}
	if t.Key != "" {
		args = append(args, "-i", t.Key)
	}
	return append(args, t.dest(), "exec "+quote(words))
}

// dest is the host for ssh.
func (t Target) dest() string {
	if t.Host.User != "" {
		return t.Host.User + "@" + t.Host.Name
	}
	return t.Host.Name
}

// joins reports whether a command joins its arguments and has a shell read them, as ssh does.
func joins(rsh string) bool {
	switch filepath.Base(rsh) {
	case "ssh", "rsh", "remsh", "lsh", "krsh", "autossh", "sshpass":
		return true
	}
	return false
}

// quote makes words safe for a shell.
func quote(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		plain := func(c rune) bool {
			return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/._-+=:,@", c))
		}
		if out[i] = w; w == "" || strings.ContainsFunc(w, plain) {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// dial starts an agent.
func (a *Agent) dial(ctx context.Context) (*link, error) {
	if !a.to.Copy {
		return a.connect(ctx, a.to.argv(a.to.Program, "--agent"))
	}
	sum, err := hashFile(a.to.Program)
	if err != nil {
		return nil, err
	}
	dir := `d="${XDG_CACHE_HOME:-$HOME/.cache}/gotrain/bin/` + sum + `"; p="$d/hcclrun"; `
	start := a.to.argv("sh", "-c", dir+`[ -x "$p" ] && exec "$p" --agent; echo "`+needsCopy+`" >&2; exit 44`)
	l, err := a.connect(ctx, start)
	if err == nil || !strings.Contains(err.Error(), needsCopy) {
		return l, err
	}
	script := dir + `mkdir -p "$d" && cat >"$p.$$" && chmod 755 "$p.$$" && mv "$p.$$" "$p"`
	if err := a.upload(ctx, a.to.argv("sh", "-c", script)); err != nil {
		return nil, err
	}
	return a.connect(ctx, start)
}

// upload sends the program itself through ssh.
func (a *Agent) upload(ctx context.Context, argv []string) error {
	f, err := os.Open(a.to.Program)
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Env = f, sshEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = patience
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return hinted(fmt.Errorf("cannot send %s: %w: %s", a.to.Program, err, strings.TrimSpace(said.String())))
	}
	return nil
}

// sshEnv is the environment of ssh: it is no rank, so the secret of a job is no business of it.
func sshEnv() (out []string) {
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, launch.TokenVar+"=") {
			out = append(out, kv)
		}
	}
	return out
}

// connect starts the command of an agent and waits until it speaks.
func (a *Agent) connect(ctx context.Context, argv []string) (*link, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = sshEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the caller alone
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	rd, wr, err := os.Pipe() // not StdoutPipe: Wait would close it before the last bytes are read
	if err != nil {
		return nil, err
	}
	er, ew, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = wr, ew
	err = cmd.Start()
	wr.Close()
	ew.Close()
	if err != nil {
		rd.Close()
		er.Close()
		return nil, err
	}
	a.to.Guard.Watch(cmd.Process.Pid)
	l := &link{host: a.Name(), cmd: cmd, stdin: stdin, errs: newStderr(er), box: newOutbox(stdin), asks: map[uint32]chan Answer{},
		dead: make(chan struct{}), gone: make(chan struct{})}
	l.box.credit = maxUpload * 2 // towards the agent nothing but the pipe holds anything back
	go func() {
		_ = cmd.Wait()
		close(l.gone)
		time.Sleep(patience / 20) // for the last frames
		l.fail(l.explain(nil))    // although the agent may still hold the pipes, as a child of a script
	}()
	l.box.send(message(kindHello, hello{Version: Version}))
	shaken := make(chan error, 1)
	in := bufio.NewReaderSize(rd, 64<<10)
	go func() { shaken <- l.handshake(in) }()
	select {
	case err = <-shaken:
	case <-ctx.Done():
		err = fmt.Errorf("no answer from the agent: %w", context.Cause(ctx))
		if text := l.errs.text(); text != "" {
			err = fmt.Errorf("%w; %s said: %s", err, argv[0], text)
		}
		l.fail(err)
		rd.Close()
	}
	if err != nil {
		l.fail(err)
		return nil, hinted(err)
	}
	go func() { l.read(in); rd.Close() }()
	go l.live(a.to.Silence)
	return l, nil
}

// handshake waits for the agent's first frame.
func (l *link) handshake(in *bufio.Reader) error {
	banner, err := skipTo(in)
	if err == nil {
		var f frame
		if f, err = readFrame(in); err == nil {
			var h hello
			if err = f.decode(&h); err == nil && (f.kind != kindHello || h.Version != Version) {
				return fmt.Errorf("the agent speaks protocol %d, and this program %d: the programs differ\nhint: --copy sends this one", h.Version, Version)
			}
		}
	}
	if err == nil {
		return nil
	}
	err = l.explain(err)
	if text := strings.TrimSpace(printable(banner)); text != "" {
		err = fmt.Errorf("%w; its output was: %s", err, text)
	}
	return err
}

// explain says why the channel ended: how ssh ended, and what it said.
func (l *link) explain(err error) error {
	if errors.Is(err, errFrame) {
		return err
	}
	select {
	case <-l.gone:
	case <-time.After(patience):
	}
	name := filepath.Base(l.cmd.Path)
	how := "the channel to the agent ended"
	if st := l.cmd.ProcessState; st != nil {
		how = fmt.Sprintf("%s ended with %s", name, st)
		if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			how = fmt.Sprintf("%s was killed by %s", name, unix.SignalName(ws.Signal()))
		}
	}
	l.errs.wait()
	if text := l.errs.text(); text != "" {
		how += ": " + text
	}
	return errors.New(how)
}

// live sends signs of life, and ends the channel when the agent gives none.
func (l *link) live(silence time.Duration) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for silent := 0; ; {
		select {
		case <-l.dead:
			return
		case <-tick.C:
		}
		l.box.send(frame{kind: kindBeat})
		// Beats are counted, not time: a process that was suspended itself has not listened.
		if silent++; l.heard.Swap(false) {
			silent = 0
		}
		if time.Duration(silent)*beat >= silence {
			l.fail(fmt.Errorf("no sign of life from the agent for %v: the host or ssh is frozen, or the network is gone\nhint: see whether the host "+
				"still answers (ping, ssh): a suspended virtual machine or container looks like this, and so does a host that swaps", silence))
			return
		}
	}
}
