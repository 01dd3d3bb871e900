package find

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/meet"
	"github.com/gotrain/gotrain/ddp/meet/pmi"
	"github.com/gotrain/gotrain/ddp/meet/pmix"
)

// table is what a launcher offers its processes: values that are visible to all after a barrier.
type table interface {
	Put(ctx context.Context, key, value string) error
	Barrier(ctx context.Context) error
	Get(ctx context.Context, key string) (string, error)
	Close() error
}

// key is rank 0's.
const key = "gotrain-0"

func (f *finder) pmi() (meet.Place, error) {
	open := func() (table, error) { return pmi.Open(f.lookup) }
	return f.table("PMI-1 (PMI_FD="+f.str("PMI_FD")+")", open), nil
}

// pmix uses libpmix. Where Slurm has set the variables and no library is there, the first host of the step serves as well.
func (f *finder) pmix() (meet.Place, error) {
	path, err := pmix.Find(f.lookup)
	if err != nil && f.id.Source == launch.SourceSlurm && f.id.MasterAddr != "" {
		return f.slurm()
	}
	if err != nil {
		msg, hint, _ := strings.Cut(err.Error(), "\nhint: ")
		if hint != "" {
			hint += ", or "
		}
		return meet.Place{}, launch.WithCode(launch.ExitUnavailable, fmt.Errorf("the launcher has a PMIx server for the address of rank 0%s, but: %s\nhint: "+
			"%sset GOTRAIN_MASTER_ADDR to the address of rank 0 (mpirun -x GOTRAIN_MASTER_ADDR=…)", f.mpirun(), msg, hint))
	}
	open := func() (table, error) { return pmix.Open(path) }
	return f.table("PMIx of job "+f.str("PMIX_NAMESPACE"), open), nil
}

func (f *finder) table(how string, open func() (table, error)) meet.Place {
	l := &launcher{open: open, how: how}
	p := meet.Place{How: how, Publish: l.publish, Lookup: l.lookup}
	if f.localName() {
		p.Job = "mpirun" // the token tells jobs apart
	}
	return p
}

// launcher exchanges the address once, and then says good-bye to the launcher.
type launcher struct {
	open  func() (table, error)
	how   string
	value string // what was exchanged
}

func (l *launcher) publish(ctx context.Context, addr string, token []byte) error {
	_, err := l.exchange(ctx, addr+"/"+string(token))
	return err
}

func (l *launcher) lookup(ctx context.Context) (addr string, token []byte, err error) {
	v, err := l.exchange(ctx, "")
	if err != nil {
		return "", nil, err
	}
	addr, secret, ok := strings.Cut(v, "/")
	if err := checkAddr(addr); err != nil || !ok {
		return "", nil, launch.WithCode(launch.ExitUnavailable, fmt.Errorf("rendezvous by %s: rank 0 left %q, which is not an address and a token", l.how, addr))
	}
	return addr, []byte(secret), nil
}

func (l *launcher) exchange(ctx context.Context, mine string) (string, error) {
	if l.value != "" {
		return l.value, nil
	}
	t, err := l.open()
	if err != nil {
		return "", launch.WithCode(launch.ExitUnavailable, fmt.Errorf("rendezvous: %w", err))
	}
	if mine != "" {
		err = t.Put(ctx, key, mine)
	}
	if err == nil {
		err = t.Barrier(ctx)
	}
	if err == nil {
		l.value, err = t.Get(ctx, key)
	}
	if e := t.Close(); err == nil {
		err = e
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return "", fmt.Errorf("rendezvous by %s: a rank did not come: %w", l.how, err)
	case err != nil:
		return "", launch.WithCode(launch.ExitUnavailable, fmt.Errorf("rendezvous by %s: %w", l.how, err))
	}
	return l.value, nil
}
