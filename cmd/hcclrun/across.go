package main

import (
	"context"
	"crypto/rand"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/launch/hosts"
	"github.com/gotrain/gotrain/ddp/launch/remote"
)

// across starts a job on the hosts of a list, or only examines them.
func (r *runner) across(ctx context.Context, list hosts.List, job launch.Job) error {
	if !r.check && (len(r.argv) == 0 || r.argv[0] == "") {
		return usageError{errors.New("no program to start")}
	}
	for _, note := range list.Notes {
		fmt.Fprintf(r.stderr, "hcclrun: %s: %s\n", list.From, note)
	}
	guard, err := launch.NewGuard()
	if err != nil {
		fmt.Fprintf(r.stderr, "hcclrun: no guard process: %v; if hcclrun is killed by SIGKILL, ssh may survive\n", err)
	}
	defer guard.Dismiss()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find the program itself: %w", err)
	}
	program, err := r.absolute(&job)
	if err != nil {
		return err
	}
	nodes := r.nodes(ctx, list, self, guard)
	defer func() { each(nodes, func(_ int, n remote.Node) error { n.Close(); return nil }) }()
	defer sweep()

	within, cancel := context.WithTimeoutCause(ctx, r.startTimeout(), fmt.Errorf("nothing within %v (--start-timeout)", r.startTimeout()))
	defer cancel()
	if r.check {
		return r.preflight(within, list, nodes, self, program)
	}
	if err := each(nodes, func(_ int, n remote.Node) error { return n.Connect(within) }); err != nil {
		return err
	}
	if err := r.slots(within, &list, nodes); err != nil {
		return err
	}
	teams, err := r.assign(list, nodes)
	if err != nil {
		return err
	}
	nodes = nodes[:len(teams)]
	if err := r.samePrograms(ctx, nodes, self, program); err != nil {
		return err
	}
	job.Hosts = teams
	if len(teams) > 1 {
		job.Token = token()
		job.Env = append(job.Env[:len(job.Env):len(job.Env)], r.interfaceEnv()...)
		meeting := r.meeting(list)
		job.Master = func(ctx context.Context) (string, int, error) { return remote.Master(ctx, nodes, meeting) }
	}
	return launch.Supervise(ctx, job)
}

// meeting is what the options and the list say of the address of rank 0.
func (r *runner) meeting(list hosts.List) remote.Meeting {
	m := remote.Meeting{Addr: r.master, Port: r.port, Interface: r.iface}
	if m.Addr == "" && m.Interface == "" {
		m.Addr = list.Hosts[0].Addr
	}
	return m
}

// token is the secret of a job.
func token() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// absolute makes the path of the program one that means the same on every host, and the working directory.
func (r *runner) absolute(job *launch.Job) (program string, err error) {
	if job.Dir == "" {
		job.Dir, err = os.Getwd()
	} else {
		job.Dir, err = filepath.Abs(job.Dir)
	}
	r.wdir = job.Dir
	if err != nil || len(job.Argv) == 0 {
		return "", err
	}
	path, err := exec.LookPath(job.Argv[0])
	if err != nil {
		if filepath.IsAbs(job.Argv[0]) { // it may exist on the hosts alone
			return "", nil
		}
		return "", usageError{fmt.Errorf("cannot start %s: %w", job.Argv[0], err)}
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	job.Argv = append([]string{path}, job.Argv[1:]...)
	if !ours(path) {
		return "", nil
	}
	return path, nil
}

// ours reports whether a program is gotrain or one that is built with its packages: such a program must be the same on every host.
func ours(path string) bool {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return false
	}
	const module = "github.com/gotrain/gotrain"
	for _, d := range info.Deps {
		if d.Path == module {
			return true
		}
	}
	return info.Main.Path == module || strings.HasPrefix(info.Path, module+"/")
}

// nodes are the hosts of a list as places to start ranks.
func (r *runner) nodes(ctx context.Context, list hosts.List, self string, guard *launch.Guard) []remote.Node {
	rsh := r.starter(list)
	own := make([]bool, len(list.Hosts))
	var wg sync.WaitGroup
	for i, h := range list.Hosts {
		wg.Go(func() { own[i] = sameUser(h.User) && remote.Own(ctx, h.Name, len(rsh) == 0) })
	}
	wg.Wait()
	var out []remote.Node
	here := false
	for i, h := range list.Hosts {
		if own[i] && !here {
			here = true
			out = append(out, remote.NewHere(h.Name))
			continue
		}
		out = append(out, remote.New(remote.Target{Host: h, Program: self, Rsh: rsh, Port: r.sshPort, Key: r.sshKey, Copy: r.copy,
			Forward: r.forward, Grace: r.grace, Guard: guard}))
	}
	return out
}

// starter is the command that replaces ssh: the user's, or that of whoever made the list; nil: ssh.
func (r *runner) starter(list hosts.List) []string {
	if words := strings.Fields(r.rsh); len(words) > 0 {
		return words
	}
	if list.Scheduler {
		return slurmStep
	}
	if agent, _ := r.lookup("OMPI_MCA_plm_rsh_agent"); strings.HasPrefix(list.From, "OMPI_MCA_") { // an MPI operator may have no sshd in its pods
		if words := strings.Fields(agent); len(words) > 0 && filepath.Base(words[0]) != "ssh" {
			return words
		}
	}
	return nil
}

// slurmStep starts a command on one host of an allocation.
var slurmStep = []string{"srun", "--nodes=1", "--ntasks=1", "--overlap", "--unbuffered", "--quiet", "--nodelist"}

// sameUser reports whether a user of a list is the one of this process.
func sameUser(name string) bool {
	if name == "" {
		return true
	}
	u, err := user.Current()
	return err == nil && u.Username == name
}

// each does something with all nodes at the same time. Its error has the errors of all of them.
func each(nodes []remote.Node, f func(i int, n remote.Node) error) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { errs[i] = f(i, n) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return launch.WithCode(launch.ExitUnavailable, err)
	}
	return nil
}

// slots asks hosts for what the list does not say: how many ranks they take.
func (r *runner) slots(ctx context.Context, list *hosts.List, nodes []remote.Node) error {
	list.Hosts = append([]hosts.Host(nil), list.Hosts...)
	return each(nodes, func(i int, n remote.Node) error {
		h := &list.Hosts[i]
		switch {
		case r.perNode > 0:
			h.Slots = r.perNode
		case r.nproc != "" && r.nproc != "auto":
			return count(&h.Slots, r.nproc, "ranks")
		case h.Slots == 0:
			a, err := n.Ask(ctx, remote.Question{What: "facts"})
			if err != nil {
				return err
			}
			if h.Slots = a.Facts.Devices; h.Slots == 0 {
				h.Slots = max(1, a.Facts.Cores)
			}
		}
		return nil
	})
}

// assign gives each host its ranks: -n in total, host by host, or all slots.
func (r *runner) assign(list hosts.List, nodes []remote.Node) (teams []launch.Team, err error) {
	total, _ := list.Slots()
	want := r.ranks
	if want == 0 {
		want = total
	}
	if want > total && !r.spread {
		return nil, usageError{fmt.Errorf("%d ranks, but the hosts of %s have %d slots\nhint: add hosts or slots, or say --oversubscribe", want, list.From, total)}
	}
	next := 0
	for i, h := range list.Hosts {
		n := h.Slots
		if want > total { // as evenly as the slots are
			n = (want * (slotsUpTo(list, i+1)) / total) - (want * slotsUpTo(list, i) / total)
		}
		n = min(n, want-next)
		if n == 0 {
			break
		}
		team := launch.Team{Host: nodes[i], Ranks: n}
		if len(h.Devices) > 0 {
			team.Env = append(team.Env, "ASCEND_RT_VISIBLE_DEVICES="+joined(h.Devices))
		}
		teams = append(teams, team)
		next += n
	}
	return teams, nil
}

func slotsUpTo(list hosts.List, i int) (n int) {
	for _, h := range list.Hosts[:i] {
		n += h.Slots
	}
	return n
}

func joined(list []int) string {
	var out []string
	for _, n := range list {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, ",")
}

// samePrograms sends the program, or checks that it is the same on all hosts.
func (r *runner) samePrograms(ctx context.Context, nodes []remote.Node, self, program string) error {
	if r.copy {
		return each(nodes, func(_ int, n remote.Node) error {
			if a, ok := n.(*remote.Agent); ok && program != "" {
				return a.Send(ctx, program)
			}
			return nil
		})
	}
	files := []string{self}
	if program != "" && program != self {
		files = append(files, program)
	}
	var wrong []string
	for i, diff := range remote.Differences(ctx, nodes, files) {
		for _, d := range diff {
			wrong = append(wrong, fmt.Sprintf("host %s: %s", nodes[i].Name(), d))
		}
	}
	if wrong == nil {
		return nil
	}
	return launch.WithCode(launch.ExitUnavailable, fmt.Errorf(
		"the hosts do not have the same programs\n%s\nhint: install the same version on all, or send it with --copy", strings.Join(wrong, "\n")))
}

// preflight examines the hosts.
func (r *runner) preflight(ctx context.Context, list hosts.List, nodes []remote.Node, self, program string) error {
	begin := time.Now()
	slots := make([]int, len(nodes))
	for i, h := range list.Hosts {
		if slots[i] = h.Slots; r.perNode > 0 {
			slots[i] = r.perNode
		}
	}
	p := remote.Preflight{Nodes: nodes, Slots: slots, Program: program, Self: self, Dir: r.wdir, Names: r.starter(list) == nil, Copied: r.copy,
		Meeting: r.meeting(list), Out: r.stdout}
	if err := p.Run(ctx); err != nil {
		return err
	}
	fmt.Fprintf(r.stdout, "%d hosts are ready (%v)\n", len(nodes), time.Since(begin).Round(10*time.Millisecond))
	return nil
}
