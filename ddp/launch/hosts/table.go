package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrInitializing is wrapped by the error for a rank table that is not complete yet. Read waits for it.
var ErrInitializing = errors.New("it is still initializing")

// number is a number that tables write as text, or as a number.
type number int

func (n *number) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	v, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return fmt.Errorf("%.40s is not a number below 65536", b)
	}
	*n = number(v)
	return nil
}

// table is a rank table of Ascend in one of its forms: version 1.0 and 1.2 have server_list, template 2 has group_list, version 2.0 has rank_list.
type table struct {
	Version string `json:"version"`
	Status  string `json:"status"`
	Servers []struct {
		ServerID string   `json:"server_id"`
		HostIP   string   `json:"host_ip"`
		Device   []device `json:"device"`
	} `json:"server_list"`
	Groups []struct {
		Instances []struct {
			PodName  string   `json:"pod_name"`
			ServerID string   `json:"server_id"`
			RankID   *number  `json:"rank_id"`
			Devices  []device `json:"devices"`
		} `json:"instance_list"`
	} `json:"group_list"`
	Ranks []struct {
		RankID   number `json:"rank_id"`
		DeviceID number `json:"device_id"`
		HostIP   string `json:"host_ip"`
		Levels   []struct {
			Layer    number `json:"net_layer"`
			Instance string `json:"net_instance_id"`
		} `json:"level_list"`
	} `json:"rank_list"`
}

type device struct {
	DeviceID *number `json:"device_id"`
	RankID   *number `json:"rank_id"`
}

// seat is one rank of a table.
type seat struct {
	host, addr   string
	rank, device int
}

// parseTable reads a rank table. Ranks, their order and their devices come from it.
func parseTable(text []byte, from string) (List, error) {
	bad := func(msg, hint string) (List, error) {
		return List{}, &Error{From: from, Msg: "rank table: " + msg, Hint: hint}
	}
	var t table
	if err := json.Unmarshal(text, &t); err != nil {
		return bad("this is not one: "+err.Error(), "a file that begins with { is read as a rank table")
	}
	switch t.Status {
	case "completed":
	case "initializing":
		return List{}, fmt.Errorf("hosts: %s: rank table: %w", shown(from), ErrInitializing)
	default:
		return bad(fmt.Sprintf("its status is %q", t.Status), `a table that can be used has "status": "completed"`)
	}
	l := List{From: from}
	var seats []seat
	var err error
	switch {
	case len(t.Servers) > 0:
		seats, err = t.servers()
	case len(t.Groups) > 0:
		seats, err = t.groups()
	case len(t.Ranks) > 0:
		seats, err = t.ranks()
		l.Notes = append(l.Notes, "of a rank table of version 2.0 only hosts, ranks and devices are used, not its networks")
	default:
		return bad("it has no server_list, no group_list and no rank_list", "it may be of a version that this program does not know: give the hosts with -H")
	}
	if err != nil {
		return bad(err.Error(), "")
	}
	if l.Hosts, err = seatHosts(seats); err != nil {
		return bad(err.Error(), "")
	}
	return l, nil
}

// servers reads versions 1.0 and 1.2.
func (t *table) servers() (seats []seat, err error) {
	for _, s := range t.Servers {
		name := s.HostIP
		if !hostname(name) {
			name = s.ServerID
		}
		if len(s.Device) == 0 {
			return nil, fmt.Errorf("server %q has no device", s.ServerID)
		}
		for _, d := range s.Device {
			if d.DeviceID == nil || d.RankID == nil {
				return nil, fmt.Errorf("a device of server %q has no device_id or no rank_id", s.ServerID)
			}
			seats = append(seats, seat{name, s.HostIP, int(*d.RankID), int(*d.DeviceID)})
		}
	}
	return seats, nil
}

// groups reads template 2. It has no ranks of devices: they count from 0 in the order of the table, unless an instance with one device has a rank.
func (t *table) groups() (seats []seat, err error) {
	for _, g := range t.Groups {
		for _, in := range g.Instances {
			name := in.ServerID
			if name == "" {
				name = in.PodName
			}
			for _, d := range in.Devices {
				if d.DeviceID == nil {
					return nil, fmt.Errorf("a device of instance %q has no device_id", name)
				}
				rank := len(seats)
				if d.RankID != nil {
					rank = int(*d.RankID)
				} else if in.RankID != nil && len(in.Devices) == 1 {
					rank = int(*in.RankID)
				}
				seats = append(seats, seat{name, "", rank, int(*d.DeviceID)})
			}
		}
	}
	return seats, nil
}

// ranks reads version 2.0, which names the machine of a rank as its network of the lowest level.
func (t *table) ranks() (seats []seat, err error) {
	for _, r := range t.Ranks {
		name := r.HostIP
		for _, l := range r.Levels {
			if l.Layer == 0 && name == "" {
				name = l.Instance
			}
		}
		if name == "" {
			return nil, fmt.Errorf("rank %d has no host_ip and no net_instance_id at layer 0, so its host is not known", r.RankID)
		}
		seats = append(seats, seat{name, r.HostIP, int(r.RankID), int(r.DeviceID)})
	}
	return seats, nil
}

// seatHosts groups ranks by host, hosts in the order of their first rank.
func seatHosts(seats []seat) ([]Host, error) {
	if len(seats) == 0 {
		return nil, errors.New("it has no rank")
	}
	slices.SortStableFunc(seats, func(a, b seat) int { return a.rank - b.rank })
	var out []Host
	for i, s := range seats {
		if s.rank != i {
			if i > 0 && s.rank == seats[i-1].rank {
				return nil, fmt.Errorf("rank %d appears twice", s.rank)
			}
			return nil, fmt.Errorf("rank %d is missing", i)
		}
		if !hostname(s.host) {
			return nil, fmt.Errorf("rank %d is on %q, which is not the name or the address of a host", i, s.host)
		}
		at := slices.IndexFunc(out, func(h Host) bool { return h.Name == s.host })
		if at < 0 {
			at = len(out)
			out = append(out, Host{Name: s.host, Addr: s.addr})
			if !hostname(s.addr) {
				out[at].Addr = ""
			}
		}
		h := &out[at]
		if slices.Contains(h.Devices, s.device) {
			return nil, fmt.Errorf("device %d of %s has two ranks", s.device, s.host)
		}
		h.Devices, h.Ranks, h.Slots = append(h.Devices, s.device), append(h.Ranks, i), h.Slots+1
		if h.Slots > maxSlots {
			return nil, fmt.Errorf("%s has more than %d devices", s.host, maxSlots)
		}
	}
	return out, nil
}

// Consecutive returns an error if a rank table gives the ranks of a host numbers that do not follow each other.
func (l List) Consecutive() error {
	next := 0
	for _, h := range l.Hosts {
		for _, r := range h.Ranks {
			if r != next {
				return &Error{From: l.From, Msg: fmt.Sprintf("rank table: rank %d is expected on %s, which has rank %d instead", next, h.Name, r),
					Hint: "number the ranks of a host one after the other"}
			}
			next++
		}
	}
	return nil
}
