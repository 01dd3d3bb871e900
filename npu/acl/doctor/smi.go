package doctor

import (
	"regexp"
	"strconv"
	"strings"
)

// smi is the table of `npu-smi info`.
type smi struct {
	Version string
	Chips   []chip
	Procs   []proc
}

// chip is two rows of it. Numbers that it does not tell are negative.
type chip struct {
	NPU, Chip, Phy int
	Name, Health   string
	Bus            string
	Power, Temp    float64
	Used, Total    int64 // MB of device memory
}

// proc is a process on a chip.
type proc struct {
	NPU, Chip int
	PID, Name string
	MB        string
}

var busID = regexp.MustCompile(`^[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9]$`)

// parseSMI reads the table. Widths differ between versions, so cells are split at bars and blanks. An A2 has one chip per NPU, an A3 two, with a column more
// (Phy-ID); the slash between numbers may lack blanks.
func parseSMI(text string) *smi {
	s := &smi{}
	var first []string // cells of the first row of a chip
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		f := strings.Fields(strings.ReplaceAll(cells[0], "/", " / "))
		switch {
		case len(f) == 0:
		case f[0] == "npu-smi":
			if _, v, ok := strings.Cut(cells[0], "Version:"); ok {
				s.Version = strings.TrimSpace(v)
			} else if len(f) > 1 {
				s.Version = f[1]
			}
		case f[0] == "NPU" || f[0] == "Chip" || f[0] == "No":
		case len(cells) >= 4 && len(f) == 2:
			s.process(f, cells)
		case len(cells) == 3 && busID.MatchString(cells[1]) && first != nil:
			s.chip(first, cells)
			first = nil
		case len(cells) == 3:
			first = cells
		}
	}
	return s
}

func (s *smi) chip(one, two []string) {
	name := strings.Fields(one[0])
	c := chip{NPU: number(name, 0), Chip: number(strings.Fields(two[0]), 0), Phy: number(strings.Fields(two[0]), 1), Health: one[1], Bus: two[1],
		Power: -1, Temp: -1, Used: -1, Total: -1}
	if len(name) > 1 {
		c.Name = strings.Join(name[1:], " ")
	}
	f := numbers(one[2])
	if len(f) > 1 {
		c.Power, c.Temp = f[0], f[1]
	}
	if f = numbers(two[2]); len(f) >= 5 { // AI core, memory, HBM
		c.Used, c.Total = int64(f[3]), int64(f[4])
	}
	s.Chips = append(s.Chips, c)
}

func (s *smi) process(f, cells []string) {
	a, err1 := strconv.Atoi(f[0])
	b, err2 := strconv.Atoi(f[1])
	if err1 == nil && err2 == nil {
		s.Procs = append(s.Procs, proc{a, b, cells[1], cells[2], cells[3]})
	}
}

func number(f []string, i int) int {
	if i >= len(f) {
		return -1
	}
	n, err := strconv.Atoi(f[i])
	if err != nil {
		return -1
	}
	return n
}

// numbers are the numbers of a cell; "-" and "NA" give -1.
func numbers(cell string) []float64 {
	var l []float64
	for _, w := range strings.Fields(strings.ReplaceAll(cell, "/", " ")) {
		v, err := strconv.ParseFloat(w, 64)
		if err != nil {
			v = -1
		}
		l = append(l, v)
	}
	return l
}

// physical is the number of a chip that hccn_tool and device files use.
func (c chip) physical() int {
	if c.Phy >= 0 {
		return c.Phy
	}
	return c.NPU
}
