package launch

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// start starts all ranks or none.
func (s *supervisor) start(done <-chan struct{}) error {
	errc := make(chan error)
	go func() {
		// The kernel sends the parent-death signal when the *thread* that forked ends, and a child inherits that thread's
		// CPU affinity: so one thread forks all ranks and lives as long as they do. It is never unlocked, because its affinity mask is changed.
		runtime.LockOSThread()
		err := s.spawnAll()
		errc <- err
		<-done
	}()
	if err := <-errc; err != nil {
		s.kill()
		for _, r := range s.ranks {
			r.cmd.Wait()
		}
		s.drain()
		return err
	}
	// Ranks may be reaped only now: until then, even a dead first rank keeps the process group alive for the others to join.
	for i, r := range s.ranks {
		go func() { s.exits <- s.reap(i, r) }()
	}
	return nil
}

func (s *supervisor) spawnAll() error {
	places := ShareNear(allowed(os.Getpid()), s.Ranks, s.Node, nodeCPUs)
	for i := range s.Ranks {
		p := places[i]
		p.Threads = max(1, min(p.Threads, runtime.GOMAXPROCS(0)/s.Ranks))
		p.limit(s.Ranks, machine)
		if _, given := LookupIn(s.Env)("GOTRAIN_THREADS"); p.Why != "" && i == 0 && !given {
			s.console.say("%s", p.Why)
		}
		if s.NoPin {
			p.CPUs = nil
		}
		if err := s.spawn(i, p); err != nil {
			return WithCode(ExitUsage, fmt.Errorf("launch: start rank %d: %w", i, err))
		}
	}
	return nil
}

func (s *supervisor) spawn(i int, p Placement) error {
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...)
	if cmd.Err != nil {
		return cmd.Err
	}
	cmd.Env = s.environ(i, p)
	cmd.SysProcAttr = sysProcAttr(s.pgid)
	r := &rank{cmd: cmd}
	writeEnds, err := s.connect(i, r)
	defer closeAll(writeEnds)
	if err != nil {
		closeAll(r.pipe)
		return err
	}
	if err := bind(p.CPUs); err != nil {
		s.console.say("cannot bind rank %d to processors %s: %v", i, FormatCPUs(p.CPUs), err)
	}
	if err := cmd.Start(); err != nil {
		closeAll(r.pipe)
		return err
	}
	if s.pgid == 0 {
		s.pgid = cmd.Process.Pid
		s.guard.watch(s.pgid)
	}
	s.ranks = append(s.ranks, r)
	if s.started != nil {
		s.started(i, cmd.Process.Pid)
	}
	return nil
}

// connect creates the pipes of a rank: stdout, stderr and its failure record.
func (s *supervisor) connect(i int, r *rank) (writeEnds []*os.File, err error) {
	prefix := ""
	if i > 0 {
		prefix = fmt.Sprintf("[rank %d] ", i)
	}
	pumps := []interface{ run(io.Reader) }{
		&pump{console: s.console, to: s.console.out, prefix: prefix, tail: &r.tail, reads: &s.reads, live: i == 0 && s.columns() > 0},
		&pump{console: s.console, to: s.console.err, prefix: prefix, tail: &r.tail, reads: &s.reads},
		&r.said,
	}
	for _, pm := range pumps {
		rd, wr, err := os.Pipe()
		if err != nil {
			return writeEnds, err
		}
		writeEnds = append(writeEnds, wr)
		r.pipe = append(r.pipe, rd)
		s.pumps.Go(func() { pm.run(rd) })
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

// columns returns the width of the terminal on stdout, or 0.
func (s *supervisor) columns() int {
	if f, ok := s.Stdout.(*os.File); ok {
		w, _ := Terminal(f, func(string) (string, bool) { return "", false })
		return w
	}
	return 0
}

// environ returns the environment of a rank: the base without the GOTRAIN_* variables of another job, plus its own.
func (s *supervisor) environ(i int, p Placement) []string {
	id := Identity{Rank: i, World: s.Ranks, LocalRank: i, LocalWorld: s.Ranks, Nodes: 1, JobID: s.JobID}
	ours := append(id.Environ(), fmt.Sprintf("GOTRAIN_THREADS=%d", p.Threads))
	if p.CPUs != nil {
		ours = append(ours, "GOTRAIN_CPUS="+FormatCPUs(p.CPUs))
	}
	if w := s.columns(); w > 0 && i == 0 {
		ours = append(ours, fmt.Sprintf("GOTRAIN_COLUMNS=%d", w))
	}
	var env []string
	for _, kv := range s.Env {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "GOTRAIN_RANK", "GOTRAIN_WORLD_SIZE", "GOTRAIN_LOCAL_RANK", "GOTRAIN_LOCAL_WORLD_SIZE", "GOTRAIN_NODE_RANK", "GOTRAIN_NODES",
			"GOTRAIN_RESTART", "GOTRAIN_JOB_ID", "GOTRAIN_CPUS", "GOTRAIN_COLUMNS", recordVar, launcherVar:
			continue
		case "GOTRAIN_THREADS": // set by the user
			if value != "" {
				ours = append(ours, kv)
			}
			continue
		}
		env = append(env, kv)
	}
	return append(env, ours...)
}
