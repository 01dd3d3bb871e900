package hosts

import (
	"net/netip"
	"strconv"
	"strings"
)

// maxSlots bounds the ranks of a host: more are a mistake.
const maxSlots = 4096

// maxHosts bounds a list, so that a file cannot make the program allocate much.
const maxHosts = 1 << 16

// item reads [user@]host[:slots]. The host may be an IPv6 address, in brackets if slots follow. Slots of 0 mean that none were given. The text of the
// error says what is wrong.
func item(s string) (h Host, problem string) {
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		h.User, s = s[:at], s[at+1:]
		if !word(h.User, "._+-$\\") {
			return h, "this is not a user name"
		}
	}
	name, slots, given := s, "", false
	switch {
	case strings.HasPrefix(s, "["):
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return h, "there is no ] after ["
		}
		name = s[1:end]
		if a, err := netip.ParseAddr(name); err != nil || !a.Is6() {
			return h, "the text in brackets is not an IPv6 address"
		}
		if rest := s[end+1:]; rest != "" {
			if slots, given = strings.CutPrefix(rest, ":"); !given {
				return h, "after ] only :SLOTS may follow"
			}
		}
	case strings.Count(s, ":") > 1:
		if a, err := netip.ParseAddr(s); err != nil || !a.Is6() {
			return h, "this is not host:slots, and not an IPv6 address"
		}
	default:
		name, slots, given = strings.Cut(s, ":")
	}
	if given {
		if h.Slots = count(slots); h.Slots == 0 {
			return h, "the number of slots is not a number from 1 to " + strconv.Itoa(maxSlots)
		}
	}
	if h.Name = name; !hostname(name) {
		return h, "this is not the name of a host"
	}
	return h, ""
}

// count reads a number of slots; 0 if it is none.
func count(s string) int {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n > maxSlots {
		return 0
	}
	return int(n)
}

// hostname reports whether s can be a host. The names go into the arguments of ssh, so none may look like an option.
func hostname(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		// A zone is free text.
		_, zone, _ := strings.Cut(s, "%")
		return zone == "" || word(zone, "._-")
	}
	return len(s) <= 253 && word(s, "._-")
}

// word reports whether s consists of letters, digits and the characters of extra, and does not begin with a dash.
func word(s, extra string) bool {
	if s == "" || s[0] == '-' {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(extra, c) >= 0 {
			continue
		}
		return false
	}
	return true
}

// ParseList reads the value of -H: "a:8,b:8", "user@a,b". A bare host has one slot, as in Open MPI; a host that occurs twice has the sum.
func ParseList(s string) (List, error) {
	l := List{From: "-H"}
	for part := range strings.SplitSeq(s, ",") {
		h, problem := item(strings.TrimSpace(part))
		if problem != "" {
			return List{}, &Error{From: l.From, Text: part, Msg: problem, Hint: "write host:slots,host:slots, such as n1:8,n2:8"}
		}
		h.Slots = max(1, h.Slots)
		l.add(h)
		if len(l.Hosts) > maxHosts {
			return List{}, &Error{From: l.From, Msg: "too many hosts"}
		}
	}
	return l, nil
}
