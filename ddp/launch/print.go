package launch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// printer passes the output of one rank on to the console, to its files, and to the tail that a report of a failure shows.
type printer struct {
	console *console
	prefix  string
	token   []byte // never shown
	tail    tail
	files   [2]*Stream // for stdout and stderr; nil: none
	open    [2]*os.File
}

// print takes whole lines of one stream.
func (p *printer) print(stderr bool, lines []byte) {
	to, i := p.console.out, 0
	if stderr {
		to, i = p.console.err, 1
	}
	if len(p.token) > 0 && bytes.Contains(lines, p.token) {
		lines = bytes.ReplaceAll(lines, p.token, []byte("[token]"))
	}
	if p.files[i] != nil {
		p.files[i].Write(lines)
	}
	for line := range bytes.Lines(lastLines(lines, tailLines)) {
		p.tail.add(bytes.TrimSuffix(line, []byte("\n")))
	}
	if p.prefix != "" {
		tagged := make([]byte, 0, len(lines)+len(lines)/2)
		for line := range bytes.Lines(lines) {
			tagged = append(append(tagged, p.prefix...), line...)
		}
		lines = tagged
	}
	p.console.lines(to, lines)
}

// lastLines is the end of a text, with at most n lines.
func lastLines(text []byte, n int) []byte {
	at := len(text)
	for range n + 1 { // the text ends with a newline
		if at = bytes.LastIndexByte(text[:at], '\n'); at < 0 {
			return text
		}
	}
	return text[at+1:]
}

// log opens the files of a rank below dir: rank.N/stdout and rank.N/stderr. A restart appends to them.
func (p *printer) log(dir string, rank int) error {
	dir = filepath.Join(dir, fmt.Sprintf("rank.%d", rank))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for i, name := range []string{"stdout", "stderr"} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
		if err != nil {
			return err
		}
		p.open[i] = f
		p.files[i] = &Stream{w: f, Keep: consoleKeep, OnError: func(err error) {
			p.console.say("cannot write the output of rank %d to %s: %v; its lines are dropped there", rank, f.Name(), err)
		}}
	}
	return nil
}

// close waits for the files to take the rest.
func (p *printer) close() {
	for i, s := range p.files {
		if s != nil {
			s.Flush(consoleEnd, nil)
		}
		if p.open[i] != nil {
			p.open[i].Close()
		}
	}
}
