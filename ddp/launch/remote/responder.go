package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
)

// responder answers questions about this machine.
type responder struct {
	mu       sync.Mutex
	listener net.Listener // for hosts that try to reach this one
	upload   *upload
}

func newResponder() *responder { return &responder{} }

// begin prepares for a question, in the order of frames: the bytes of a file follow it at once.
func (r *responder) begin(q Question) {
	if q.What == askStore {
		r.mu.Lock()
		r.upload.abandon(errors.New("another file came"))
		r.upload = newUpload(q)
		r.mu.Unlock()
	}
}

// answer answers a question.
func (r *responder) answer(ctx context.Context, q Question) Answer {
	a := Answer{ID: q.ID}
	var err error
	switch q.What {
	case askFacts:
		a.Facts = facts(q)
	case askListen:
		a.Port, err = r.listen(q.Port)
	case askClose:
		r.close()
	case askReach:
		a.Reach, a.From = reach(ctx, q.Addrs)
	case askStore:
		r.mu.Lock()
		u := r.upload
		r.mu.Unlock()
		a.Path, a.Have, err = u.wait(ctx)
	default:
		err = fmt.Errorf("%w: question %q", errFrame, q.What)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// write takes bytes of the file that is being stored.
func (r *responder) write(b []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.upload == nil {
		return fmt.Errorf("%w: bytes of no file", errFrame)
	}
	r.upload.write(b)
	return nil
}

// close ends what a caller left open.
func (r *responder) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		r.listener.Close()
		r.listener = nil
	}
	r.upload.abandon(errors.New("the caller is gone"))
}

// listen opens a port on all addresses. A free one is chosen below the range from which systems take ports of outgoing connections, so that it is
// still free when rank 0 opens it.
func (r *responder) listen(port int) (int, error) {
	r.close()
	var l net.Listener
	var err error
	if port != 0 {
		l, err = net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
	} else {
		for try := range 64 {
			if l, err = net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(20000+(os.Getpid()*7+try*131+int(time.Now().UnixNano()))%10000))); err == nil {
				break
			}
		}
		if err != nil {
			l, err = net.Listen("tcp", ":0")
		}
	}
	if err != nil {
		return 0, err
	}
	r.mu.Lock()
	r.listener = l
	r.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// reachTime is how long a host tries to connect to an address.
const reachTime = 2 * time.Second

// reach tries to connect to all addresses at the same time.
func reach(ctx context.Context, addrs []string) (why, from []string) {
	why, from = make([]string, len(addrs)), make([]string, len(addrs))
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	var wg sync.WaitGroup
	for i, a := range addrs {
		wg.Go(func() {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", a)
			if err != nil {
				why[i] = reason(err)
				return
			}
			from[i] = c.LocalAddr().(*net.TCPAddr).IP.String()
			c.Close()
		})
	}
	wg.Wait()
	return why, from
}

// reason is the cause of a failed connection, without the addresses.
func reason(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		if op.Timeout() {
			return "no answer"
		}
		err = op.Err
	}
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		err = sys.Err
	}
	return err.Error()
}

// facts looks at this machine.
func facts(q Question) *Facts {
	f := &Facts{OS: runtime.GOOS, Arch: runtime.GOARCH, Devices: devices(), Cores: launch.Cores(), Shm: shmFree(), Addresses: addresses(),
		Server: sshServer(os.Getenv("SSH_CONNECTION")), Files: map[string]string{}}
	f.Hostname, _ = os.Hostname()
	for _, path := range q.Files {
		sum, err := hashFile(path)
		if err != nil {
			sum = "error: " + err.Error()
		}
		f.Files[path] = sum
	}
	if q.Dir != "" {
		if err := goodDir(q.Dir); err != nil {
			f.Dir = err.Error()
		}
	}
	f.Now = time.Now()
	return f
}

// devices counts the NPUs of this machine.
func devices() int {
	found, _ := filepath.Glob("/dev/davinci[0-9]*")
	return len(found)
}

// addresses lists the addresses of interfaces that are up, without loopback.
func addresses() (out []Address) {
	ifs, _ := net.Interfaces()
	for _, i := range ifs {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		all, _ := i.Addrs()
		for _, a := range all {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
				out = append(out, Address{i.Name, n.String(), i.MTU})
			}
		}
	}
	return out
}

// goodDir reports why a directory cannot be used.
func goodDir(dir string) error {
	st, err := os.Stat(dir)
	if err == nil && !st.IsDir() {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	return err
}

// hashFile returns the SHA-256 of a file.
func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s is not a regular file", path))
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return sum(h), nil
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
