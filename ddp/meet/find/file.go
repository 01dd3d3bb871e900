package find

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/meet"
)

// How often a waiting rank looks for the file, and for how long it waits for another file if nobody answers at the address of the one it found.
const (
	firstLook = 20 * time.Millisecond
	lastLook  = 500 * time.Millisecond
	sameAgain = time.Second
)

// file reads the value of GOTRAIN_RENDEZVOUS.
func (f *finder) file(value string) (meet.Place, error) {
	const name = "GOTRAIN_RENDEZVOUS"
	if strings.HasPrefix(value, "tcp://") {
		return f.address(name, "")
	}
	d, p, err := f.drop(value)
	if err != nil {
		return meet.Place{}, err
	}
	if err := writable(filepath.Dir(d.path)); err != nil {
		return meet.Place{}, f.wrong(name, err)
	}
	return p, nil
}

// drop makes the place of a file.
func (f *finder) drop(value string) (*drop, meet.Place, error) {
	const name = "GOTRAIN_RENDEZVOUS"
	path, ok := strings.CutPrefix(strings.Replace(value, "file://localhost/", "file:///", 1), "file://")
	if !ok || !filepath.IsAbs(path) {
		return nil, meet.Place{}, f.wrong(name, fmt.Errorf("%q is not a file\nhint: write file:///FOLDER, a folder that all hosts share, or "+
			"file:///FOLDER/FILE", value))
	}
	job := f.id.JobID
	if st, err := os.Stat(path); strings.HasSuffix(path, "/") || err == nil && st.IsDir() {
		if f.localName() && f.id.Nodes != 1 {
			return nil, meet.Place{}, f.wrong("GOTRAIN_JOB_ID", errors.New("not set, and the launcher does not name the job, so several may use "+path+
				"\nhint: set it to the same name on all hosts, or name a file in GOTRAIN_RENDEZVOUS"))
		}
		path = filepath.Join(path, "gotrain-"+job)
	} else if f.localName() {
		job = "at-" + filepath.Base(path)
	}
	d := &drop{path: path, job: job, generation: f.id.Restart}
	p := meet.Place{How: "file " + path, Publish: d.publish, Lookup: d.lookup, Clear: d.clear}
	if job != f.id.JobID {
		p.Job = job
	}
	return d, p, nil
}

func writable(dir string) error {
	st, err := os.Stat(dir)
	if err == nil && !st.IsDir() {
		err = fmt.Errorf("%s is not a folder", dir)
	}
	if err != nil {
		return fmt.Errorf("%w\nhint: create a folder that all hosts share", err)
	}
	return nil
}

// drop is a file in which rank 0 leaves its address.
type drop struct {
	path       string
	job        string
	generation int
	own        bool   // the folder is ownFolder's: it goes when it is empty
	wrote      []byte // by rank 0
	read       []byte // by another rank, the last time
}

func (d *drop) publish(_ context.Context, addr string, token []byte) error {
	if n, err := d.look(); err == nil && n.job == d.job && n.generation > d.generation {
		return d.over(n)
	}
	text := note{job: d.job, generation: d.generation, addr: addr, token: string(token)}.format()
	tmp := filepath.Join(filepath.Dir(d.path), ".gotrain-"+rand.Text())
	file, err := d.create(tmp)
	if err != nil {
		return d.failed(err)
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if e := file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp, d.path)
	}
	if err != nil {
		os.Remove(tmp)
		return d.failed(err)
	}
	d.wrote = text
	return nil
}

// create makes a file. A job that ends may have just removed the folder, because it was empty; once there is a file in it, nobody can.
func (d *drop) create(path string) (*os.File, error) {
	for try := 0; ; try++ {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if !d.own || !errors.Is(err, fs.ErrNotExist) || try == 100 {
			return file, err
		}
		if _, err := privateFolder(filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
}

func (d *drop) failed(err error) error {
	return launch.WithCode(launch.ExitStorage, fmt.Errorf("rendezvous: rank 0 cannot leave its address: %w\nhint: all hosts need a shared folder in which "+
		"this user can write", err))
}

func (d *drop) over(n note) error {
	return launch.WithCode(launch.ExitUnavailable, fmt.Errorf("rendezvous: generation %d of job %s is over, %s has generation %d",
		d.generation, d.job, d.path, n.generation))
}

// clear removes the file, unless another rank 0 has replaced it.
func (d *drop) clear() {
	if b, err := readPrivate(d.path); err == nil && d.wrote != nil && bytes.Equal(b, d.wrote) {
		os.Remove(d.path)
	}
	if d.own {
		os.Remove(filepath.Dir(d.path)) // fails unless it is empty
	}
}

// lookup waits until rank 0 of this generation has left its address.
func (d *drop) lookup(ctx context.Context) (addr string, token []byte, err error) {
	began, wait := time.Now(), firstLook
	ignored := ""
	for {
		n, err := d.look()
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", nil, launch.WithCode(launch.ExitUnavailable, fmt.Errorf("rendezvous: %w", err))
		case n.job != d.job:
			ignored = fmt.Sprintf("; it ignores that of job %s", n.job)
		case n.generation > d.generation:
			return "", nil, d.over(n)
		case n.generation < d.generation:
			ignored = fmt.Sprintf("; it ignores that of generation %d", n.generation)
		case bytes.Equal(n.format(), d.read) && time.Since(began) < sameAgain:
		default:
			d.read = n.format()
			return n.addr, []byte(n.token), nil
		}
		select {
		case <-ctx.Done():
			return "", nil, fmt.Errorf("rendezvous: rank 0 has not left its address in %s%s: %w", d.path, ignored, context.Cause(ctx))
		case <-time.After(wait):
			wait = min(wait*3/2, lastLook)
		}
	}
}

func (d *drop) look() (note, error) {
	b, err := readPrivate(d.path)
	if err != nil {
		return note{}, err
	}
	n, err := parseNote(b)
	if err != nil {
		return note{}, fmt.Errorf("%s: %w\nhint: remove it", d.path, err)
	}
	return n, nil
}

// maxNote is more than a note can have: a name of a host, a token of the greatest length.
const maxNote = 8192

func readPrivate(path string) ([]byte, error) {
	file, err := openPrivate(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := private(file, "hint: remove it; rank 0 writes it with mode 0600"); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, maxNote))
}

// note is what the file says.
type note struct {
	job        string
	generation int
	addr       string
	token      string // "": all ranks have one
}

const noteHead = "gotrain rendezvous 1"

func (n note) format() []byte {
	s := fmt.Sprintf("%s\njob %s\ngeneration %d\naddress %s\n", noteHead, n.job, n.generation, n.addr)
	if n.token != "" {
		s += "token " + n.token + "\n"
	}
	return []byte(s + "end\n")
}

// parseNote is strict: what it accepts, format gives back.
func parseNote(b []byte) (note, error) {
	var n note
	lines := strings.Split(string(b), "\n")
	if lines[0] != noteHead {
		return n, errors.New("this is not the address of a rank 0")
	}
	for _, l := range lines[1:] {
		key, value, _ := strings.Cut(l, " ")
		switch key {
		case "job":
			n.job = value
		case "generation":
			fmt.Sscanf(value, "%d", &n.generation)
		case "address":
			n.addr = value
		case "token":
			n.token = value
		}
	}
	if err := checkAddr(n.addr); err != nil {
		return n, err
	}
	if !bytes.Equal(n.format(), b) {
		return n, errors.New("it is damaged")
	}
	return n, nil
}

// checkAddr checks what another process says: one or more host:port, separated by commas.
func checkAddr(list string) error {
	for a := range strings.SplitSeq(list, ",") {
		if host, port, err := net.SplitHostPort(a); err != nil || host == "" || port == "" {
			return fmt.Errorf("%q is not an address", list)
		}
	}
	return nil
}
