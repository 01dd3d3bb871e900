package acl

// slots divides a ring of memory into slots that are taken and given back in order.
type slots struct {
	size       int64
	head, tail int64 // positions ever taken and given back; head - tail bytes are in use
	list       []slot
}

// slot is a piece of the ring in use.
type slot struct {
	id   int64
	end  int64 // position behind it
	done bool
}

// take finds n contiguous bytes, at most half of the ring, and returns their offset and the slot's id.
func (s *slots) take(n int64) (at, id int64, ok bool) {
	n = roundUp(max(n, 1), 64)
	start := s.head
	if rest := s.size - start%s.size; rest < n {
		start += rest // the end of the ring is too short
	}
	if start+n-s.tail > s.size {
		return 0, 0, false
	}
	s.head = start + n
	s.list = append(s.list, slot{id: s.head, end: s.head})
	return start % s.size, s.head, true
}

// give marks a slot as free. Its memory is available once all slots taken before it are free too.
func (s *slots) give(id int64) {
	for i := range s.list {
		if s.list[i].id == id {
			s.list[i].done = true
		}
	}
	n := 0
	for n < len(s.list) && s.list[n].done {
		s.tail = s.list[n].end
		n++
	}
	s.list = append(s.list[:0], s.list[n:]...)
	if len(s.list) == 0 {
		s.tail = s.head
	}
}
