package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// spawnAll starts the ranks of a part, on the calling thread.
func (l *Local) spawnAll() error {
	n := l.part.First.LocalWorld
	places := ShareNear(allowed(os.Getpid()), n, l.part.NUMA, nodeCPUs)
	for i := range n {
		p := places[i]
		p.Threads = max(1, min(p.Threads, runtime.GOMAXPROCS(0)/n))
		p.limit(n, machine)
		if _, given := LookupIn(l.part.Env)("GOTRAIN_THREADS"); p.Why != "" && i == 0 && !given {
			l.events.Say(p.Why)
		}
		if l.part.NoPin {
			p.CPUs = nil
		}
		if err := l.spawn(i, p); err != nil {
			code := ExitUsage // there is no such program
			if exhausted(err) {
				code = ExitUnavailable // and may be there later
			}
			return WithCode(code, fmt.Errorf("launch: start rank %d: %w", l.part.First.Rank+i, err))
		}
	}
	return nil
}

// exhausted tells whether a start failed for want of something that others use up: files, processes, memory.
func exhausted(err error) bool {
	for _, no := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

func (l *Local) spawn(i int, p Placement) error {
	cmd := exec.Command(l.part.Argv[0], l.part.Argv[1:]...)
	if cmd.Err != nil {
		return cmd.Err
	}
	cmd.Dir = l.part.Dir
	cmd.Env = l.part.environ(i, p)
	cmd.SysProcAttr = sysProcAttr(l.pgid)
	r := &process{cmd: cmd}
	writeEnds, err := l.connect(i, r)
	defer closeAll(writeEnds)
	if err != nil {
		closeAll(r.pipe)
		return err
	}
	rank := l.part.First.Rank + i
	if err := bind(p.CPUs); err != nil {
		l.events.Say(fmt.Sprintf("cannot bind rank %d to processors %s: %v", rank, FormatCPUs(p.CPUs), err))
	}
	if err := cmd.Start(); err != nil {
		closeAll(r.pipe)
		return err
	}
	l.mu.Lock()
	if l.pgid == 0 {
		l.pgid = cmd.Process.Pid
		l.guard.Watch(l.pgid)
	}
	l.procs = append(l.procs, r)
	l.mu.Unlock()
	if l.started != nil {
		l.started(rank, cmd.Process.Pid)
	}
	return nil
}

// connect creates the pipes of a rank: stdout, stderr and its failure record.
func (l *Local) connect(i int, r *process) (writeEnds []*os.File, err error) {
	rank, e := l.part.First.Rank+i, l.events
	out := &pump{lines: func(b []byte) { e.Output(rank, false, b) }, reads: &l.reads}
	if rank == 0 && l.part.Columns > 0 {
		out.live = func(b []byte) { e.Progress(rank, b) }
	}
	pumps := []interface{ run(io.Reader) }{
		out,
		&pump{lines: func(b []byte) { e.Output(rank, true, b) }, reads: &l.reads},
		recordPump(func(rec Record) { e.Record(rank, rec, since(rec.Time)) }),
	}
	for _, pm := range pumps {
		rd, wr, err := os.Pipe()
		if err != nil {
			return writeEnds, err
		}
		writeEnds = append(writeEnds, wr)
		r.pipe = append(r.pipe, rd)
		l.pumps.Go(func() { pm.run(rd) })
	}
	r.cmd.Stdout, r.cmd.Stderr, r.cmd.ExtraFiles = writeEnds[0], writeEnds[1], writeEnds[2:]
	env, err := recordEnv(writeEnds[2])
	r.cmd.Env = append(r.cmd.Env, env)
	return writeEnds, err
}

func closeAll(fs []*os.File) {
	for _, f := range fs {
		f.Close()
	}
}

// environ returns the environment of a rank: the base without the GOTRAIN_* variables of another job, plus its own.
func (p *Part) environ(i int, at Placement) []string {
	id := p.First
	id.Rank, id.LocalRank = id.Rank+i, i
	ours := append(id.Environ(), fmt.Sprintf("GOTRAIN_THREADS=%d", at.Threads))
	if at.CPUs != nil {
		ours = append(ours, "GOTRAIN_CPUS="+FormatCPUs(at.CPUs))
	}
	if p.Columns > 0 && id.Rank == 0 {
		ours = append(ours, fmt.Sprintf("GOTRAIN_COLUMNS=%d", p.Columns))
	}
	if p.Token != "" {
		ours = append(ours, TokenVar+"="+p.Token)
	}
	return append(base(p.Env, &ours, p.Token != "", id.MasterAddr != ""), ours...)
}

// TokenVar holds the secret of a job, by which its ranks recognise each other.
const TokenVar = "GOTRAIN_JOB_TOKEN"

// base returns an environment without the variables that the supervisor sets.
func base(all []string, ours *[]string, token, master bool) (env []string) {
	for _, kv := range all {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "GOTRAIN_RANK", "GOTRAIN_WORLD_SIZE", "GOTRAIN_LOCAL_RANK", "GOTRAIN_LOCAL_WORLD_SIZE", "GOTRAIN_NODE_RANK", "GOTRAIN_NODES",
			"GOTRAIN_RESTART", "GOTRAIN_JOB_ID", "GOTRAIN_CPUS", "GOTRAIN_COLUMNS", recordVar, launcherVar:
			continue
		case TokenVar:
			if token {
				continue
			}
		case "GOTRAIN_MASTER_ADDR", "GOTRAIN_MASTER_PORT":
			if master {
				continue
			}
		case "GOTRAIN_THREADS": // set by the user
			if value != "" {
				*ours = append(*ours, kv)
			}
			continue
		}
		env = append(env, kv)
	}
	return env
}
