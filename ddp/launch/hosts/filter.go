package hosts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Filter keeps what include names, or drops what exclude names, in the form of DeepSpeed: "a:0,2@b" means devices 0 and 2 of host a and all of host b.
// A range may be written 0-3. At most one of the two may be given.
func (l List) Filter(include, exclude string) (List, error) {
	option, text := "--include", include
	switch {
	case include != "" && exclude != "":
		return List{}, &Error{From: "--include and --exclude", Msg: "only one of them can be given"}
	case include == "" && exclude == "":
		return l, nil
	case include == "":
		option, text = "--exclude", exclude
	}
	picks, err := parsePicks(option, text)
	if err != nil {
		return List{}, err
	}
	for _, p := range picks {
		if !slices.ContainsFunc(l.Hosts, func(h Host) bool { return h.Name == p.host }) {
			return List{}, &Error{From: option, Text: p.host, Msg: "this host is not among those of " + l.From}
		}
	}
	out := l
	out.Hosts = nil
	for _, h := range l.Hosts {
		i := slices.IndexFunc(picks, func(p pick) bool { return p.host == h.Name })
		switch {
		case i < 0 && option == "--exclude", i >= 0 && option == "--include" && picks[i].devices == nil:
			out.Hosts = append(out.Hosts, h)
		case i < 0 || picks[i].devices == nil: // not included, or excluded as a whole
		default:
			kept, err := h.pick(option, picks[i].devices)
			if err != nil {
				return List{}, err
			}
			if kept.Slots > 0 {
				out.Hosts = append(out.Hosts, kept)
			}
		}
	}
	if len(out.Hosts) == 0 {
		return List{}, &Error{From: option, Text: text, Msg: "no host is left"}
	}
	for i := range out.Hosts { // the ranks of a table are those of all devices
		out.Hosts[i].Ranks = nil
	}
	return out, nil
}

// pick returns the host with only some of its devices.
func (h Host) pick(option string, devices []int) (Host, error) {
	have := h.Devices
	if have == nil && h.Slots > 0 {
		for d := range h.Slots {
			have = append(have, d)
		}
	}
	if have == nil && option == "--exclude" {
		return h, &Error{From: option, Text: h.Name, Msg: "the list of hosts does not say how many devices this host has", Hint: "write " + h.Name + ":8"}
	}
	for _, d := range devices {
		if have != nil && !slices.Contains(have, d) {
			return h, &Error{From: option, Text: h.Name, Msg: fmt.Sprintf("this host has no device %d (it has %d slots)", d, len(have))}
		}
	}
	keep := devices
	if option == "--exclude" {
		keep = slices.DeleteFunc(slices.Clone(have), func(d int) bool { return slices.Contains(devices, d) })
	}
	h.Devices, h.Slots = keep, len(keep)
	return h, nil
}

type pick struct {
	host    string
	devices []int // nil: all
}

func parsePicks(option, text string) ([]pick, error) {
	const hint = "write HOST:DEVICE,DEVICE@HOST, such as n1:0,2@n2"
	var out []pick
	for part := range strings.SplitSeq(text, "@") {
		part = strings.TrimSpace(part)
		name, list, some := strings.Cut(part, ":")
		if strings.HasPrefix(part, "[") {
			var rest string
			name, rest, _ = strings.Cut(part[1:], "]")
			list, some = strings.CutPrefix(rest, ":")
		}
		p := pick{host: name}
		if !hostname(name) {
			return nil, &Error{From: option, Text: part, Msg: "this is not the name of a host", Hint: hint}
		}
		if some {
			var ok bool
			if p.devices, ok = numbers(list); !ok {
				return nil, &Error{From: option, Text: part, Msg: "these are not numbers of devices", Hint: hint}
			}
		}
		if slices.ContainsFunc(out, func(o pick) bool { return o.host == name }) {
			return nil, &Error{From: option, Text: part, Msg: "this host appears twice", Hint: hint}
		}
		out = append(out, p)
	}
	return out, nil
}

// numbers reads "0,2,4-7", sorted and without duplicates.
func numbers(list string) (out []int, ok bool) {
	for part := range strings.SplitSeq(list, ",") {
		lo, hi, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			hi = lo
		}
		a, errA := strconv.ParseUint(lo, 10, 16)
		b, errB := strconv.ParseUint(hi, 10, 16)
		if errA != nil || errB != nil || b < a || b >= maxSlots || len(out) > 1<<16 {
			return nil, false
		}
		for n := a; n <= b; n++ {
			out = append(out, int(n))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), true
}
