package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/comm/perf"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train"
)

// benchPrinter prints what rank 0 knows: the table on standard output, or JSON there and the rest on standard error.
type benchPrinter struct {
	*app
	f     *benchFlags
	rank  int
	node  int // machines may have the same name
	cfg   perf.Config
	trans string
}

// benchLine is a row in JSON. It begins like the lines of the peers in bench/peer.
type benchLine struct {
	Peer  string  `json:"peer"`
	Op    string  `json:"op"`
	World int     `json:"world"`
	Bytes int64   `json:"bytes"`
	US    float64 `json:"us"`
	GBs   float64 `json:"gb_s"`

	BusGBs    float64 `json:"bus_gb_s"`
	MinUS     float64 `json:"min_us"`
	P99US     float64 `json:"p99_us"`
	Wrong     *int64  `json:"wrong"` // null: not compared
	DType     string  `json:"dtype"`
	Reduction string  `json:"reduction,omitempty"`
	Compress  string  `json:"compress,omitempty"`
	Transport string  `json:"transport"`
	Algorithm string  `json:"algorithm,omitempty"`
}

// remark prints a line that is not part of the table.
func (p *benchPrinter) remark(format string, a ...any) {
	var w io.Writer = p.out
	if p.f.asJSON {
		if p.level == levelQuiet {
			return
		}
		w = p.err
	}
	fmt.Fprintf(w, "# "+format+"\n", a...)
}

// hostText is the space for what a rank says of itself.
const hostText = 256

// head says who takes part, over which links, and begins the table. All ranks call it.
func (p *benchPrinter) head(ctx context.Context, c comm.Communicator, cfg perf.Config) error {
	p.cfg, p.trans = cfg, c.Transport()
	levels := comm.Describe(c)
	host, _ := os.Hostname()
	mine, all := make([]byte, hostText), make([]byte, hostText*c.Size())
	var addrs []string
	for _, l := range levels {
		if l.Address != "" {
			addrs = append(addrs, l.Address)
		}
	}
	copy(mine[:hostText-3], fmt.Sprintf("%s\x00%d\x00%s", host, p.node, strings.Join(addrs, ", ")))
	if err := comm.Wait(ctx)(c.AllGather(ctx, comm.Host(all, npu.U8), comm.Host(mine, npu.U8))); err != nil {
		return err
	}
	if p.rank != 0 {
		return nil
	}
	hosts := hostsOf(all, c.Size())
	p.remark("gotrain %s bench %v, %s on %s, transport %s", train.Version(), cfg.Kind, amounts(c.Size(), "rank"), amounts(len(hosts), "host"), p.trans)
	for _, h := range hosts {
		p.remark("host %s: %s", h.name, h.ranks())
	}
	for _, l := range levels {
		for i, line := range levelText(l, cfg) {
			if i > 0 {
				line = "  " + line
			}
			p.remark("%s", line)
		}
	}
	if p.f.compresses() {
		p.remark("sums travel as %s: a time includes encoding and decoding, and a sum may be off by what rounding loses; algbw and busbw count f32", p.f.compress)
	}
	if cfg.Heap {
		p.remark("memory is not the transport's own")
	}
	if !p.f.asJSON {
		fmt.Fprintf(p.out, "#\n#%11s %12s %6s %5s %12s %9s %9s %7s %12s %12s\n", "bytes", "elements", "type", "op", "time", "algbw", "busbw", "wrong", "min", "p99")
		fmt.Fprintf(p.out, "#%11s %12s %6s %5s %12s %9s %9s %7s %12s %12s\n", "", "", "", "", "µs", "GB/s", "GB/s", "", "µs", "µs")
	}
	return nil
}

// amounts counts things: "1 rank", "2 ranks".
func amounts(n int, what string) string { return fmt.Sprintf("%d %s", n, plural(n, what)) }

// benchHost is a host with its ranks.
type benchHost struct {
	name  string
	first int
	last  int
	count int
	addrs []string
}

// hostsOf reads what the ranks said of themselves.
func hostsOf(all []byte, size int) (hosts []*benchHost) {
	known := map[string]*benchHost{}
	for r := range size {
		text := all[r*hostText : (r+1)*hostText]
		f := bytes.SplitN(text, []byte{0}, 4) // name, node, address, nothing
		key, addr := string(f[0])+"\x00"+string(f[1]), f[2]
		h := known[key]
		if h == nil {
			h = &benchHost{name: string(f[0]), first: r}
			known[key] = h
			hosts = append(hosts, h)
		}
		h.last = r
		h.count++
		if len(addr) > 0 {
			h.addrs = append(h.addrs, string(addr))
		}
	}
	return hosts
}

// ranks describes the ranks of a host and where they listen.
func (h *benchHost) ranks() string {
	s := fmt.Sprintf("rank %d", h.first)
	switch {
	case h.count > 1 && h.count == h.last-h.first+1:
		s = fmt.Sprintf("ranks %d-%d", h.first, h.last)
	case h.count > 1:
		s = fmt.Sprintf("%d ranks from %d to %d", h.count, h.first, h.last)
	}
	const shown = 4
	if len(h.addrs) > shown {
		return fmt.Sprintf("%s at %s and %d more", s, strings.Join(h.addrs[:shown], ", "), len(h.addrs)-shown)
	}
	if len(h.addrs) > 0 {
		return s + " at " + strings.Join(h.addrs, ", ")
	}
	return s
}

// levelText describes one level of the transport: what it is, which algorithm serves which size, and notes.
func levelText(l comm.Level, cfg perf.Config) []string {
	s := fmt.Sprintf("%s between %s", l.Transport, amounts(l.Ranks, "rank"))
	if l.Bandwidth > 0 {
		s += fmt.Sprintf(": %v, measured when the ranks met", link.Link{Bandwidth: l.Bandwidth, Latency: l.Latency})
		if l.Sharing > 1 {
			s += fmt.Sprintf("; %d ranks share it", l.Sharing)
		}
	}
	lines := []string{s}
	if l.Algorithm != nil {
		lines = append(lines, fmt.Sprintf("%v: %s", cfg.Kind, algorithms(l.Algorithm, cfg)))
	}
	return append(lines, l.Notes...)
}

// algorithms lists which algorithm serves which size: "exchange to 16 KiB, mesh from 64 KiB".
func algorithms(of func(comm.Call) string, cfg perf.Config) string {
	var out []string
	var last string
	for i, n := range cfg.Sizes {
		word := of(comm.Call{Kind: cfg.Kind, Op: cfg.Op, DType: cfg.DType, Root: cfg.Root, Elems: n / int64(cfg.DType.Size())})
		if word == last {
			continue
		}
		if i > 0 {
			out[len(out)-1] += " to " + perf.FormatBytes(cfg.Sizes[i-1])
			word, last = word+" from "+perf.FormatBytes(n), word
		} else {
			last = word
		}
		out = append(out, word)
	}
	return strings.Join(out, ", ")
}

// row prints a size. Every rank says what it found wrong.
func (p *benchPrinter) row(r perf.Row) {
	if r.First != "" {
		fmt.Fprintf(p.err, "wrong: %s\n", r.First)
	}
	if p.rank != 0 {
		return
	}
	op := "-"
	switch p.cfg.Kind {
	case comm.AllReduce, comm.ReduceScatter, comm.Reduce:
		op = p.cfg.Op.String()
	}
	if !p.f.asJSON {
		wrong := strconv.FormatInt(r.Wrong, 10)
		if p.cfg.NoCheck {
			wrong = "-"
		}
		fmt.Fprintf(p.out, " %11d %12d %6v %5s %12.1f %9.3f %9.3f %7s %12.1f %12.1f\n", r.Bytes, r.Elems, p.cfg.DType, op, micros(r.Median), r.AlgBW()/1e9,
			r.BusBW()/1e9, wrong, micros(r.Min), micros(r.P99))
		return
	}
	l := benchLine{Peer: "gotrain", Op: p.cfg.Kind.String(), World: r.Size, Bytes: r.Bytes, US: rounded(micros(r.Median), 2), GBs: rounded(r.AlgBW()/1e9, 3),
		BusGBs: rounded(r.BusBW()/1e9, 3), MinUS: rounded(micros(r.Min), 2), P99US: rounded(micros(r.P99), 2), DType: p.cfg.DType.String(), Transport: p.trans,
		Algorithm: r.Algorithm}
	if !p.cfg.NoCheck {
		l.Wrong = &r.Wrong
	}
	if op != "-" {
		l.Reduction = op
	}
	if p.f.compresses() {
		l.Compress = p.f.compress
	}
	_ = p.printLine(l) // app.result remembers it
}

// tail ends the table.
func (p *benchPrinter) tail(s *perf.Summary) {
	if p.rank == 0 {
		p.remark("%s", s.Verdict())
	}
}
