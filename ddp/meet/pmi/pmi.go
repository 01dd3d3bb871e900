package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
)

// maxLine bounds a line of the launcher; Hydra's are below 2 KiB.
const maxLine = 64 << 10

// maxValue is the greatest length of a value that every launcher takes.
const maxValue = 1000

// Client is a connection to the launcher. It serves one goroutine at a time.
type Client struct {
	conn net.Conn
	in   *bufio.Reader
	kvs  string // name of the job's table
	dead error
}

// Open takes over the connection that the environment names. The first question is asked by the first call.
func Open(lookup launch.Lookup) (*Client, error) {
	v, _ := lookup("PMI_FD")
	fd, err := strconv.Atoi(strings.TrimSpace(v))
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("pmi: PMI_FD=%q is not the number of a connection", v)
	}
	file := os.NewFile(uintptr(fd), "PMI_FD")
	conn, err := net.FileConn(file) // a copy
	file.Close()
	if err != nil {
		return nil, fmt.Errorf("pmi: PMI_FD=%d is not an open connection: %w\nhint: a wrapper between the launcher and the program may have closed it; "+
			"set GOTRAIN_MASTER_ADDR to the address of rank 0", fd, err)
	}
	return New(conn), nil
}

// New returns a client over a connection to a launcher.
func New(conn net.Conn) *Client { return &Client{conn: conn, in: bufio.NewReaderSize(conn, 4096)} }

// Put stores a value. Keys and values have no spaces.
func (c *Client) Put(ctx context.Context, key, value string) error {
	if key == "" || value == "" || len(value) > maxValue || strings.Contains(key, "=") || strings.ContainsAny(key+value, " \n\r\t\x00") {
		return fmt.Errorf("pmi: cannot store %q under %q", value, key)
	}
	if err := c.init(ctx); err != nil {
		return err
	}
	_, err := c.ask(ctx, "put_result", "cmd=put kvsname="+c.kvs+" key="+key+" value="+value)
	return err
}

// Barrier waits for all ranks of the job.
func (c *Client) Barrier(ctx context.Context) error {
	if err := c.init(ctx); err != nil {
		return err
	}
	_, err := c.ask(ctx, "barrier_out", "cmd=barrier_in")
	return err
}

// Get returns a value that a rank stored before the last barrier.
func (c *Client) Get(ctx context.Context, key string) (string, error) {
	if err := c.init(ctx); err != nil {
		return "", err
	}
	m, err := c.ask(ctx, "get_result", "cmd=get kvsname="+c.kvs+" key="+key)
	return m["value"], err
}

// Close leaves the launcher in order and closes the connection.
func (c *Client) Close() error {
	if c.conn == nil {
		return nil
	}
	var err error
	if c.kvs != "" && c.dead == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err = c.ask(ctx, "finalize_ack", "cmd=finalize")
	}
	err = errors.Join(err, c.conn.Close())
	c.conn, c.dead = nil, net.ErrClosed
	return err
}

// init introduces this process, once.
func (c *Client) init(ctx context.Context) error {
	if c.kvs != "" || c.dead != nil {
		return c.dead
	}
	if _, err := c.ask(ctx, "response_to_init", "cmd=init pmi_version=1 pmi_subversion=1"); err != nil {
		return err
	}
	m, err := c.ask(ctx, "my_kvsname", "cmd=get_my_kvsname")
	if err == nil && m["kvsname"] == "" {
		err = c.broken(errors.New("the launcher does not name the table of the job"))
	}
	c.kvs = m["kvsname"]
	return err
}

// ask sends a line and reads the answer. After a failure to do so, the streams are out of step, and every further call fails.
func (c *Client) ask(ctx context.Context, want, line string) (map[string]string, error) {
	if c.dead != nil {
		return nil, c.dead
	}
	stop := context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_, err := c.conn.Write([]byte(line + "\n"))
	var text string
	if err == nil {
		text, err = c.line()
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		verb, _, _ := strings.Cut(strings.TrimPrefix(line, "cmd="), " ")
		return nil, c.broken(fmt.Errorf("no answer to %s: %w", verb, err))
	}
	m := fields(text)
	if m["cmd"] != want {
		return nil, c.broken(fmt.Errorf("the launcher answered %.100q instead of %s", text, want))
	}
	if rc := m["rc"]; rc != "" && rc != "0" {
		return nil, fmt.Errorf("pmi: the launcher refused: %s (rc=%s)", m["msg"], rc)
	}
	return m, nil
}

func (c *Client) broken(err error) error {
	c.dead = fmt.Errorf("pmi: %w", err)
	return c.dead
}

func (c *Client) line() (string, error) {
	var out []byte
	for {
		part, err := c.in.ReadSlice('\n')
		out = append(out, part...)
		if err == nil {
			return string(out), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
		if len(out) > maxLine {
			return "", errors.New("the launcher sent a line without an end")
		}
	}
}

// fields reads "cmd=get_result rc=0 msg=success value=a=b": a value ends at a space, and may contain =.
func fields(line string) map[string]string {
	m := map[string]string{}
	for f := range strings.FieldsSeq(line) {
		if k, v, ok := strings.Cut(f, "="); ok {
			m[k] = v
		}
	}
	return m
}
