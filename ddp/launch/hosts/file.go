package hosts

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Parse reads a host file or a rank table. from names it in messages.
func Parse(text []byte, from string) (List, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if t := bytes.TrimLeft(text, " \t\r\n"); len(t) > 0 && t[0] == '{' {
		return parseTable(t, from)
	}
	l := List{From: from}
	n := 0
	for raw := range strings.Lines(string(text)) {
		n++
		raw = strings.TrimRight(raw, "\r\n")
		line, _, _ := strings.Cut(raw, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		list, err := parseLine(line)
		if err != nil {
			err.From, err.Line, err.Text = from, n, strings.TrimSpace(raw)
			return List{}, err
		}
		for _, h := range list {
			l.add(h)
		}
		if len(l.Hosts) > maxHosts {
			return List{}, &Error{From: from, Line: n, Msg: "too many hosts"}
		}
	}
	if len(l.Hosts) == 0 {
		return List{}, &Error{From: from, Msg: "no host in it"}
	}
	return l, nil
}

const lineHint = "a line is HOST, HOST:SLOTS or HOST slots=SLOTS, with user@ in front and a # comment behind if need be"

// equals is a = with space around, which Open MPI allows.
var equals = regexp.MustCompile(`\s*=\s*`)

// parseLine reads a line without its comment. Usually it has one host; a host that is repeated on a line has as many slots more.
func parseLine(line string) ([]Host, *Error) {
	fields := strings.Fields(equals.ReplaceAllString(line, "="))
	h, problem := item(fields[0])
	if problem != "" {
		return nil, &Error{Msg: problem, Hint: lineHint}
	}
	out := []Host{h}
	for _, f := range fields[1:] {
		key, value, isOption := strings.Cut(f, "=")
		if !isOption {
			again, problem := item(f)
			if problem != "" || again.Name != h.Name {
				return nil, &Error{Msg: fmt.Sprintf("%q is neither an option nor the same host again", f), Hint: lineHint}
			}
			out = append(out, again)
			continue
		}
		if err := out[0].option(key, value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// option applies an option of a line. Names are those of Open MPI, which the others share.
func (h *Host) option(key, value string) *Error {
	switch strings.ReplaceAll(strings.ToLower(key), "-", "_") {
	case "slots", "slot", "cpu", "cpus", "count":
		if h.Slots > 0 {
			return &Error{Msg: "the number of slots is given twice", Hint: lineHint}
		}
		if value == "auto" {
			return nil
		}
		if h.Slots = count(value); h.Slots == 0 {
			return &Error{Msg: fmt.Sprintf("slots=%s is not a number from 1 to %d", value, maxSlots)}
		}
	case "max_slots", "slots_max", "cpus_max", "cpu_max", "count_max", "max_cpus", "max_count": // how far mpirun may overload a host
	case "user", "username", "user_name":
		if !word(value, "._+-$\\") {
			return &Error{Msg: fmt.Sprintf("%q is not a user name", value)}
		}
		h.User = value
	case "port":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 65535 {
			return &Error{Msg: fmt.Sprintf("port=%s is not a port from 1 to 65535", value)}
		}
		h.Port = n
	default:
		return &Error{Msg: fmt.Sprintf("there is no option %s", key), Hint: "options are slots, max_slots, user and port"}
	}
	return nil
}
