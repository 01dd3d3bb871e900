package launch

import (
	"bytes"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
)

// For any output of a rank in any pieces, lines come out whole, short enough, each with its prefix, and the last ones are kept.
func FuzzPump(f *testing.F) {
	f.Add([]byte("one\ntwo\r\n10%\r20%\rthree\n\nlast"), uint16(3), true)
	f.Add([]byte("\x1b[2K\rstep 1\x1b[2K\rstep 2\n\r\x1b[Kx"), uint16(1), true)
	f.Add([]byte("\r\r\r\n\n\r"), uint16(2), false)
	f.Fuzz(func(t *testing.T, text []byte, size uint16, live bool) {
		var out, screen bytes.Buffer
		c := newConsole(&screen, &out)
		defer c.close(closedChan)
		to := &printer{console: c, prefix: "> "}
		p := &pump{lines: func(b []byte) { to.print(true, b) }, reads: new(atomic.Int64)}
		if live {
			p.live = c.progress
		}
		p.run(&pieces{string(text), int(size) + 1})
		lines := strings.SplitAfter(out.String(), "\n")
		if last := lines[len(lines)-1]; last != "" {
			t.Fatalf("a line without an end: %q", last)
		}
		var seen []string
		for _, l := range lines[:len(lines)-1] {
			body, ok := strings.CutPrefix(strings.TrimSuffix(l, "\n"), "> ")
			if !ok || len(body) > maxLine || strings.ContainsRune(body, '\r') && !live && strings.HasSuffix(body, "\r") {
				t.Fatalf("line %.80q of %d bytes", l, len(l))
			}
			seen = append(seen, body[:min(len(body), tailWidth)])
		}
		if kept := to.tail.last(); !slices.Equal(kept, seen[max(0, len(seen)-tailLines):]) {
			t.Fatalf("kept %q of %q", kept, seen)
		}
		if cap(p.rest) > 4*maxLine {
			t.Fatalf("holds %d bytes", cap(p.rest))
		}
	})
}

// Records arrive through the pipe of a rank among other bytes.
func FuzzRecords(f *testing.F) {
	f.Add([]byte(`{"pid":7,"time":"2026-01-02T03:04:05Z","code":74,"reason":"disk full","blames":[1,2]}` + "\n"))
	f.Add([]byte("{}\nnull\n{\"busy\":\"x\",\"time\":\"2026-01-02T03:04:05Z\"}\n"))
	f.Add(bytes.Repeat([]byte("["), 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		var k records
		k.read(bytes.NewReader(b))
		k.doing(func(int) bool { return true })
		if r, _ := k.get(); r != nil && (r.Time.IsZero() || !bytes.ContainsRune(b, '\n')) {
			t.Fatalf("got %+v", r)
		}
	})
}

// Any content of the control group files of a kernel or container.
func FuzzQuota(f *testing.F) {
	f.Add("0::/a/b\n", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "150000 100000\n")
	f.Add("3:cpu,cpuacct:/docker/x\n", "32 31 0:29 /docker/x /cg rw - cgroup cgroup rw,cpu\n", "-1")
	f.Add("0::/../..\n:\n", "- - -\n", "max 0")
	f.Fuzz(func(t *testing.T, groups, mounts, limit string) {
		root := fstest.MapFS{"proc/self/cgroup": {Data: []byte(groups)}, "proc/self/mountinfo": {Data: []byte(mounts)}}
		for _, dir := range []string{"sys/fs/cgroup", "cg", "sys/fs/cgroup/a"} {
			root[dir+"/cpu.max"] = &fstest.MapFile{Data: []byte(limit)}
			root[dir+"/cpu.cfs_quota_us"] = &fstest.MapFile{Data: []byte(limit)}
			root[dir+"/cpu.cfs_period_us"] = &fstest.MapFile{Data: []byte("100000")}
		}
		p := Placement{Threads: 4}
		if p.limit(2, root); p.Threads < 1 || p.Threads > 4 {
			t.Fatalf("%+v", p)
		}
	})
}
