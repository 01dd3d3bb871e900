package find

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/meet"
)

// DefaultPort is the port of rank 0 where an address is given without one. It is torchrun's.
const DefaultPort = 29500

// besides is the distance of rank 0's port from the one on which torchrun serves its store. Jobs on one host usually count up from 29500 one by one.
const besides = 100

// Where returns the place at which the ranks of a job meet. lookup gives the environment, such as os.LookupEnv. Errors have exit code 64.
func Where(id launch.Identity, lookup launch.Lookup) (meet.Place, error) {
	f := &finder{id: id, lookup: lookup}
	p, err := f.where()
	if err != nil {
		return meet.Place{}, err
	}
	given, err := token(lookup)
	if err != nil {
		return meet.Place{}, err
	}
	switch {
	case given != nil:
		p.Token = given
		keep(&p, given)
	case p.Publish == nil:
		p.Open = true
	case id.Rank == 0:
		p.Token = newToken()
	}
	return p, nil
}

// keep makes a place publish the address only: all ranks have the token already.
func keep(p *meet.Place, given []byte) {
	publish, lookup := p.Publish, p.Lookup
	if publish == nil {
		return
	}
	p.Publish = func(ctx context.Context, addr string, _ []byte) error { return publish(ctx, addr, nil) }
	p.Lookup = func(ctx context.Context) (string, []byte, error) {
		addr, _, err := lookup(ctx)
		return addr, given, err
	}
}

// finder tries one place after the other.
type finder struct {
	id     launch.Identity
	lookup launch.Lookup
}

func (f *finder) str(name string) string {
	v, _ := f.lookup(name)
	return strings.TrimSpace(v)
}

func (f *finder) has(name string) bool { return f.str(name) != "" }

func (f *finder) where() (meet.Place, error) {
	own, shared := f.has("GOTRAIN_MASTER_ADDR"), f.has("GOTRAIN_RENDEZVOUS")
	if own && shared {
		return meet.Place{}, &launch.EnvError{Source: launch.SourceGotrain, Var: "GOTRAIN_RENDEZVOUS",
			Msg: "set, but GOTRAIN_MASTER_ADDR is set as well", Hint: "unset one of them"}
	}
	switch {
	case own:
		return f.address("GOTRAIN_MASTER_ADDR", "GOTRAIN_MASTER_PORT")
	case shared:
		return f.file(f.str("GOTRAIN_RENDEZVOUS"))
	case f.has("MASTER_ADDR"):
		return f.address("MASTER_ADDR", "MASTER_PORT")
	case f.has("PET_RDZV_ENDPOINT"):
		return f.address("PET_RDZV_ENDPOINT", "")
	case f.has("PMI_FD"):
		return f.pmi()
	case f.has("PMIX_NAMESPACE"):
		return f.pmix()
	case f.id.Source == launch.SourceSlurm && f.id.MasterAddr != "":
		return f.slurm()
	case f.id.MasterAddr != "" && f.id.MasterPort != 0:
		return f.at(f.id.MasterAddr, f.id.MasterPort, "the launcher's address of rank 0")
	case f.id.Nodes == 1:
		return f.local()
	}
	return meet.Place{}, f.nothing()
}

// address reads an address of rank 0 from a variable, and its port from another one. The port may also follow the address.
func (f *finder) address(name, portName string) (meet.Place, error) {
	host, port, err := launch.Endpoint(f.str(name))
	if err != nil {
		return meet.Place{}, f.wrong(name, err)
	}
	how := name + "=" + f.str(name)
	if v := f.str(portName); portName != "" && v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > 65535 {
			return meet.Place{}, f.wrong(portName, fmt.Errorf("%q is not a port\nhint: use a number from 1 to 65535", v))
		}
		if port != 0 && port != n {
			return meet.Place{}, f.wrong(portName, fmt.Errorf("%d is not the port in %s\nhint: give the port once", n, how))
		}
		port, how = n, how+" "+portName+"="+v
	}
	if port == 0 {
		port = DefaultPort
	}
	if name != "GOTRAIN_MASTER_ADDR" && f.str("TORCHELASTIC_USE_AGENT_STORE") == "True" {
		if port += besides; port > 65535 {
			port -= 2 * besides
		}
		how += fmt.Sprintf(" (torchrun's store; gotrain takes port %d)", port)
	}
	return f.at(host, port, how)
}

func (f *finder) at(host string, port int, how string) (meet.Place, error) {
	if a, err := netip.ParseAddr(host); err == nil && a.IsUnspecified() && f.id.Nodes != 1 {
		return meet.Place{}, f.wrong("address of rank 0", fmt.Errorf("%s is every machine's own address\nhint: give the address of rank 0", host))
	}
	p := meet.Place{Addr: net.JoinHostPort(host, strconv.Itoa(port)), How: how}
	if f.localName() {
		p.Job = "at-" + p.Addr // the same on all hosts
	}
	return p, nil
}

// localName reports whether the job's name was derived from a process, so that other hosts have another one.
func (f *finder) localName() bool {
	return !f.has("GOTRAIN_JOB_ID") && (f.id.Source == launch.SourcePMI || strings.HasPrefix(f.id.JobID, "parent-"))
}

func (f *finder) wrong(name string, err error) error {
	msg, hint, _ := strings.Cut(err.Error(), "\nhint: ")
	return &launch.EnvError{Source: f.id.Source, Var: name, Msg: msg, Hint: hint}
}

// nothing lists what could have been set.
func (f *finder) nothing() error {
	text := fmt.Errorf("the environment does not say where rank 0 of %d is: there is no GOTRAIN_MASTER_ADDR, no GOTRAIN_RENDEZVOUS, no MASTER_ADDR, "+
		"no PET_RDZV_ENDPOINT, no PMI_FD, no PMIX_NAMESPACE and no step of Slurm%s\nhint: set GOTRAIN_MASTER_ADDR to the address of rank 0 on all hosts, "+
		"or GOTRAIN_RENDEZVOUS=file:///FOLDER to a folder that all hosts share", f.id.World, f.mpirun())
	return launch.WithCode(launch.ExitUsage, text)
}

// mpirun names the host of Open MPI's mpirun, which often is that of rank 0, but need not be.
func (f *finder) mpirun() string {
	uri := f.str("OMPI_MCA_orte_hnp_uri") // 1901789184.0;tcp://192.0.2.2,10.0.0.2:49713;tcp6://…
	_, rest, ok := strings.Cut(uri, "tcp://")
	addrs, _, found := strings.Cut(rest, ":")
	if !ok || !found {
		return ""
	}
	var good []string
	for a := range strings.SplitSeq(addrs, ",") {
		if ip, err := netip.ParseAddr(a); err == nil {
			good = append(good, ip.String())
		}
	}
	if len(good) == 0 {
		return ""
	}
	return " (mpirun runs at " + strings.Join(good, " or ") + ")"
}

// local is a file in a folder that only this user may enter, for ranks on one machine.
func (f *finder) local() (meet.Place, error) {
	dir, err := ownFolder()
	if err != nil {
		return meet.Place{}, err
	}
	d, p, err := f.drop("file://" + dir + "/")
	if err != nil {
		return meet.Place{}, err
	}
	d.own, p.How = true, "a file on this host"
	return p, nil
}

func ownFolder() (string, error) {
	base := "/dev/shm"
	if st, err := os.Stat(base); err != nil || !st.IsDir() {
		base = os.TempDir()
	}
	return privateFolder(fmt.Sprintf("%s/gotrain-meet-%d", base, os.Getuid()))
}
