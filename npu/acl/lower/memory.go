package lower

// place gives temporaries their offsets. Two whose first and last uses do not overlap may share memory.
func (p *Program) place() {
	type life struct{ first, last int }
	lives := make([]life, len(p.Temps))
	for i := range lives {
		lives[i].first = -1
	}
	for at, c := range p.Calls {
		c.tensors(func(t Tensor) {
			if t.Base.Space != Temp {
				return
			}
			if l := &lives[t.Base.Index]; l.first < 0 {
				l.first, l.last = at, at
			} else {
				l.last = at
			}
		})
	}
	for i := range p.Spare {
		if p.Spare[i].Bytes > 0 {
			p.Spare[i].Offset = p.Scratch
			p.Scratch += p.Spare[i].Bytes
		}
	}
	base := p.Scratch
	var placed []int
	for i := range p.Temps {
		t := &p.Temps[i]
		if lives[i].first < 0 { // never used
			t.Bytes, t.Offset = 0, 0
			continue
		}
		t.Offset = base
		for moved := true; moved; { // the lowest place that is free for its whole life
			moved = false
			for _, j := range placed {
				o := p.Temps[j]
				if lives[j].first <= lives[i].last && lives[i].first <= lives[j].last && t.Offset < o.Offset+o.Bytes && o.Offset < t.Offset+t.Bytes {
					t.Offset, moved = o.Offset+o.Bytes, true
				}
			}
		}
		placed = append(placed, i)
		p.Scratch = max(p.Scratch, t.Offset+t.Bytes)
	}
}

// tensors calls fn for every tensor among the arguments.
func (c Call) tensors(fn func(Tensor)) {
	for _, a := range c.Args {
		switch a.Code {
		case "T", "To":
			if !a.Null {
				fn(a.Tensor)
			}
		case "TL", "TLo":
			for _, t := range a.List {
				fn(t)
			}
		}
	}
}
