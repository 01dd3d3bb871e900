package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Preflight is an examination of the hosts of a job.
type Preflight struct {
	Nodes   []Node
	Slots   []int  // ranks of each node
	Program string // of the job, for the comparison; "": none
	Self    string // path of hcclrun here
	Dir     string // working directory
	Names   bool   // names are host names (of ssh), which must resolve
	Copied  bool   // programs are sent, so they need not be there
	Meeting Meeting
	Out     io.Writer
}

// cell is the result of one check of one host.
type cell struct {
	text string
	red  string // why it failed; "": it did not
	hint string
}

const (
	maxSkew = 2 * time.Second // with more, time stamps of logs and files confuse people and build tools
	minShm  = 64 << 20
)

// Run examines all hosts at the same time and prints one table. It stops after the first row with a failure, because the rows below depend on it. Its error has
// the exit code 69.
func (p *Preflight) Run(ctx context.Context) error {
	n := len(p.Nodes)
	t := &table{out: p.Out}
	t.row("check", func(i int) cell { return cell{text: p.Nodes[i].Name()} }, n)
	if p.Names {
		if err := t.row("name resolves", func(i int) cell { return p.resolve(ctx, i) }, n); err != nil {
			return err
		}
	}
	if err := t.row("agent", func(i int) cell { return p.agent(ctx, i) }, n); err != nil {
		return err
	}
	all := make([]*Facts, n)
	skews := make([]time.Duration, n)
	if err := t.row("answers", func(i int) cell {
		begin := time.Now()
		a, err := p.Nodes[i].Ask(ctx, Question{What: askFacts, Dir: p.Dir})
		if err == nil && a.Facts == nil {
			err = fmt.Errorf("%w: no facts", errFrame)
		}
		if err != nil {
			return bad("no", err)
		}
		all[i], skews[i] = a.Facts, a.Facts.Now.Sub(begin.Add(time.Since(begin)/2))
		return cell{text: time.Since(begin).Round(100 * time.Microsecond).String()}
	}, n); err != nil {
		return err
	}
	if err := p.programs(ctx, t, all); err != nil {
		return err
	}
	for _, row := range p.rows(all, skews) {
		if err := t.row(row.name, row.cell, n); err != nil {
			return err
		}
	}
	return p.network(ctx, t, all)
}

type checkRow struct {
	name string
	cell func(i int) cell
}

// rows are the checks that need the facts only.
func (p *Preflight) rows(all []*Facts, skews []time.Duration) []checkRow {
	return []checkRow{
		{"processor", func(i int) cell {
			c := cell{text: all[i].OS + "/" + all[i].Arch}
			if other := all[0].OS + "/" + all[0].Arch; c.text != other {
				c.red, c.hint = fmt.Sprintf("%s is %s, %s is %s", p.Nodes[i].Name(), c.text, p.Nodes[0].Name(), other),
					"all ranks of a job must run on the same kind of processor"
			}
			return c
		}},
		{"directory", func(i int) cell {
			if all[i].Dir != "" {
				return cell{"no", all[i].Dir, "the working directory must exist on every host; choose another with --wdir"}
			}
			return cell{text: "ok"}
		}},
		{"devices", func(i int) cell { return p.devices(i, all[i]) }},
		{"clock", func(i int) cell {
			c := cell{text: fmt.Sprintf("%+.1fms", float64(skews[i].Microseconds())/1000)}
			if skews[i].Abs() > maxSkew {
				c.text = fmt.Sprintf("%+.1fs", skews[i].Seconds())
				c.red, c.hint = fmt.Sprintf("its clock differs by %s", c.text), "start chrony or another NTP client there"
			}
			return c
		}},
		{"/dev/shm", func(i int) cell {
			switch free := all[i].Shm; {
			case free < 0 && all[i].OS == "linux":
				return cell{"no", "there is no /dev/shm", "ranks of a host meet there: mount a tmpfs"}
			case free < 0:
				return cell{text: "–"}
			case free < minShm:
				return cell{fmt.Sprintf("%d MiB", free>>20), fmt.Sprintf("only %d MiB are free in /dev/shm", free>>20),
					"give the container more shared memory (docker run --shm-size=1g)"}
			default:
				return cell{text: fmt.Sprintf("%.1f GiB", float64(free)/(1<<30))}
			}
		}},
	}
}

func bad(text string, err error) cell {
	msg, hint, _ := strings.Cut(err.Error(), "\nhint: ")
	return cell{text, msg, hint}
}

// resolve looks a name up.
func (p *Preflight) resolve(ctx context.Context, i int) cell {
	name := p.Nodes[i].Name()
	if net.ParseIP(name) != nil {
		return cell{text: "address"}
	}
	if _, here := p.Nodes[i].(*Here); here {
		return cell{text: "this host"}
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	ips, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil || len(ips) == 0 {
		return cell{text: "by ssh"} // a name of ~/.ssh/config, or ssh will say
	}
	if ip := net.ParseIP(ips[0]); ip != nil && ip.IsLoopback() {
		return cell{ips[0], fmt.Sprintf("%s is %s here, which is this machine to every host", name, ips[0]),
			"correct /etc/hosts (Debian gives the own name 127.0.1.1), or use the address"}
	}
	return cell{text: ips[0]}
}

// agent starts the agent.
func (p *Preflight) agent(ctx context.Context, i int) cell {
	begin := time.Now()
	if _, here := p.Nodes[i].(*Here); here {
		return cell{text: "this host"}
	}
	if err := p.Nodes[i].Connect(ctx); err != nil {
		return bad("no", err)
	}
	return cell{text: "ok " + time.Since(begin).Round(10*time.Millisecond).String()}
}

// programs compares the programs with those here.
func (p *Preflight) programs(ctx context.Context, t *table, all []*Facts) error {
	var files []string
	for _, f := range []string{p.Self, p.Program} {
		if f != "" {
			files = append(files, f)
		}
	}
	if len(files) == 0 || p.Copied {
		return nil
	}
	diff := Differences(ctx, p.Nodes, files)
	return t.row("program", func(i int) cell {
		if len(diff[i]) == 0 {
			return cell{text: "same"}
		}
		return cell{"differs", strings.Join(diff[i], "; "), "install the same version on every host, or send it with --copy"}
	}, len(all))
}

// Differences compares files on all nodes with those of this machine, and returns for each node what is not equal.
func Differences(ctx context.Context, nodes []Node, files []string) [][]string {
	want := map[string]string{}
	for _, f := range files {
		want[f], _ = hashFile(f)
	}
	out := make([][]string, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		if _, here := n.(*Here); here {
			continue
		}
		wg.Go(func() {
			a, err := n.Ask(ctx, Question{What: askFacts, Files: files})
			if err != nil || a.Facts == nil {
				out[i] = []string{fmt.Sprint("no answer: ", err)}
				return
			}
			for _, f := range files {
				switch have := a.Facts.Files[f]; {
				case strings.HasPrefix(have, "error: "):
					out[i] = append(out[i], strings.TrimPrefix(have, "error: "))
				case have != want[f]:
					out[i] = append(out[i], fmt.Sprintf("%s is %.8s there and %.8s here", f, have, want[f]))
				}
			}
		})
	}
	wg.Wait()
	return out
}

func (p *Preflight) devices(i int, f *Facts) cell {
	slots := p.Slots[i]
	if slots == 0 { // as many as there are devices
		if slots = f.Devices; slots == 0 {
			slots = f.Cores
		}
	}
	switch {
	case f.Devices == 0:
		return cell{text: counted(f.Cores, "core") + ", " + counted(slots, "rank")}
	case slots > f.Devices:
		return cell{fmt.Sprintf("%d < %d", f.Devices, slots), fmt.Sprintf("it has %d NPUs, and the list says %d slots", f.Devices, slots),
			"give the host fewer slots"}
	default:
		return cell{text: counted(f.Devices, "NPU") + ", " + counted(slots, "rank")}
	}
}

// counted writes a number of things: "1 rank", "2 ranks".
func counted(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}

// network checks the way to the first host.
func (p *Preflight) network(ctx context.Context, t *table, all []*Facts) error {
	n := len(p.Nodes)
	if n < 2 {
		return nil
	}
	addr, port, err := Master(ctx, p.Nodes, p.Meeting)
	if err != nil {
		return t.row("reaches "+p.Nodes[0].Name(), func(int) cell { return bad("no", err) }, 1)
	}
	if _, err := p.Nodes[0].Ask(ctx, Question{What: askListen, Port: port}); err != nil {
		return err
	}
	defer func() { _, _ = p.Nodes[0].Ask(context.WithoutCancel(ctx), Question{What: askClose}) }()
	from := make([]string, n)
	from[0] = addr
	if err := t.row("reaches "+p.Nodes[0].Name(), func(i int) cell {
		if i == 0 {
			return cell{text: addr}
		}
		begin := time.Now()
		a, err := p.Nodes[i].Ask(ctx, Question{What: askReach, Addrs: []string{net.JoinHostPort(addr, strconv.Itoa(port))}})
		if err == nil && len(a.Reach) == 1 && a.Reach[0] != "" {
			err = errors.New(a.Reach[0])
		}
		if err != nil || len(a.From) != 1 {
			return bad("no", fmt.Errorf("cannot reach %s: %w", addr, err))
		}
		from[i] = a.From[0]
		return cell{text: "in " + time.Since(begin).Round(100*time.Microsecond).String()}
	}, n); err != nil {
		return err
	}
	if err := t.row("from address", func(i int) cell { return cell{text: from[i]} }, n); err != nil {
		return err
	}
	return t.row("MTU", func(i int) cell { return mtu(p.Nodes[0].Name(), all, from, i) }, n)
}

// mtu compares the packet size of the interfaces that are used.
func mtu(first string, all []*Facts, from []string, i int) cell {
	of := func(i int) int {
		for _, a := range all[i].Addresses {
			if addrOf(a) == from[i] {
				return a.MTU
			}
		}
		return 0
	}
	mine, other := of(i), of(0)
	if mine == 0 {
		return cell{text: "–"}
	}
	c := cell{text: strconv.Itoa(mine)}
	if other != 0 && mine != other {
		c.red = fmt.Sprintf("its interface has an MTU of %d, that of %s %d", mine, first, other)
		c.hint = "large packets get lost where a switch does not fragment them: give all hosts the same MTU"
	}
	return c
}
