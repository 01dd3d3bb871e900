package survey

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images"
)

// Set is one split of a data set.
type Set struct {
	Name   string
	Source data.Source
}

// Options say how to examine.
type Options struct {
	Workers   int // goroutines; 0: GOMAXPROCS
	MaxPixels int // larger pictures are broken; 0: images.DefaultMaxPixels
	// Progress is called from time to time, one call at a time. It may be nil.
	Progress func(done, all int)
}

// stored is a source of pictures in files.
type stored interface {
	Encoded(i int, buf []byte) ([]byte, error)
}

type finding struct {
	sum     [sha256.Size]byte
	good    bool
	bytes   int64
	w, h    int
	format  string
	broken  error
	damaged string
	label   int      // -1: unknown
	moments *moments // of a sample that is no picture in a file; nil: none
}

// Examine reads every sample once. It returns an error only if ctx ends; what is wrong with samples is in the report.
func Examine(ctx context.Context, sets []Set, o Options) (*Report, error) {
	all := 0
	for _, s := range sets {
		all += s.Source.Len()
	}
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	r := &Report{}
	same := map[[sha256.Size]byte][]Copy{}
	var order [][sha256.Size]byte
	before := 0
	for _, s := range sets {
		found, m, err := each(ctx, s.Source, workers, o, func(n int) {
			if o.Progress != nil {
				o.Progress(before+n, all)
			}
		})
		if err != nil {
			return nil, err
		}
		before += s.Source.Len()
		r.Sets = append(r.Sets, summarise(s, found, m))
		for i, f := range found {
			if !f.good {
				continue
			}
			if len(same[f.sum]) == 0 {
				order = append(order, f.sum)
			}
			same[f.sum] = append(same[f.sum], Copy{s.Name, pathOf(s.Source, i), f.label})
		}
	}
	for _, sum := range order {
		if c := same[sum]; len(c) > 1 {
			d := Duplicate{Samples: c}
			for _, x := range c[1:] {
				d.Sets = d.Sets || x.Set != c[0].Set
				d.Labels = d.Labels || x.Label != c[0].Label
			}
			r.Duplicates = append(r.Duplicates, d)
		}
	}
	return r, nil
}

// each examines all samples of a source.
func each(ctx context.Context, src data.Source, workers int, o Options, told func(int)) ([]finding, *moments, error) {
	found := make([]finding, src.Len())
	var pictures levels
	var next, done atomic.Int64
	var mu sync.Mutex
	var wait sync.WaitGroup
	var failed error
	for range min(workers, len(found)) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			e, err := newExaminer(src, o)
			if err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
				return
			}
			for i := int(next.Add(1)) - 1; i < len(found) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				found[i] = e.examine(ctx, i)
				if n := done.Add(1); n%64 == 0 || int(n) == len(found) {
					mu.Lock()
					told(int(n))
					mu.Unlock()
				}
			}
			mu.Lock()
			pictures.add(&e.levels)
			mu.Unlock()
		}()
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("survey: %w", context.Cause(ctx))
	}
	total := pictures.moments()
	for i := range found { // in the order of samples: sums of other orders differ in their last bits
		if m := found[i].moments; m != nil {
			total.add(m)
		}
	}
	return found, total, failed
}

// summarise makes the report of one set.
func summarise(s Set, found []finding, m *moments) SetReport {
	r := SetReport{Name: s.Name, Source: s.Source.Name(), Samples: len(found)}
	var w, h []int
	count := map[int]int{}
	for i, f := range found {
		r.Bytes += f.bytes
		if f.label >= 0 {
			count[f.label]++
		}
		switch {
		case f.broken != nil:
			r.Broken = append(r.Broken, Broken{pathOf(s.Source, i), f.broken.Error()})
			continue
		case f.damaged != "":
			r.Damaged = append(r.Damaged, Broken{pathOf(s.Source, i), f.damaged})
		}
		if f.format != "" {
			if r.Formats == nil {
				r.Formats = map[string]int{}
			}
			r.Formats[f.format]++
			w, h = append(w, f.w), append(h, f.h)
		}
	}
	r.Width, r.Height = rangeOf(w), rangeOf(h)
	channels := 3
	if f := s.Source.Fields()[0]; len(f.Shape) == 3 {
		channels = f.Shape[0]
	}
	r.Mean, r.Std = m.result(min(channels, 3))
	classes := s.Source.Classes()
	for label, name := range classes {
		r.Classes = append(r.Classes, ClassCount{name, count[label]})
	}
	for label := 0; classes == nil && label <= maxKey(count); label++ {
		r.Classes = append(r.Classes, ClassCount{fmt.Sprint(label), count[label]})
	}
	return r
}

// maxKey limits classes without names to what can be printed.
func maxKey(count map[int]int) int {
	top := -1
	for k := range count {
		top = max(top, min(k, 1<<16))
	}
	return top
}

func pathOf(src data.Source, i int) string {
	if p, ok := src.(interface{ Path(int) string }); ok {
		return p.Path(i)
	}
	return fmt.Sprintf("sample %d of %s", i, src.Name())
}

// examiner is what one goroutine reuses from sample to sample.
type examiner struct {
	src    data.Source
	stored stored
	dec    *images.Decoder
	raw    []byte
	pic    images.Picture
	dst    [][]byte
	levels levels
}

func newExaminer(src data.Source, o Options) (*examiner, error) {
	e := &examiner{src: src}
	if s, ok := src.(stored); ok {
		var err error
		if e.dec, err = images.NewDecoder(images.Auto); err != nil {
			return nil, err
		}
		e.stored, e.dec.MaxPixels = s, o.MaxPixels
		return e, nil
	}
	for _, f := range src.Fields() {
		e.dst = append(e.dst, data.Memory(f.Bytes()))
	}
	return e, nil
}

// examine reads one sample. A file that crashes a decoder is broken.
func (e *examiner) examine(ctx context.Context, i int) (f finding) {
	defer func() {
		if v := recover(); v != nil {
			f.good, f.broken = false, fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	f.label = -1
	if l, ok := e.src.(data.Labelled); ok {
		f.label = l.Label(i)
	}
	if e.stored != nil {
		e.picture(i, &f)
	} else {
		e.sample(ctx, i, &f)
	}
	f.good = f.broken == nil
	return f
}

// picture decodes a stored picture whole.
func (e *examiner) picture(i int, f *finding) {
	if e.raw, f.broken = e.stored.Encoded(i, e.raw); f.broken != nil {
		return
	}
	f.bytes, f.sum = int64(len(e.raw)), sha256.Sum256(e.raw)
	info, err := e.dec.Header(e.raw)
	if err != nil {
		f.broken = err
		return
	}
	if f.damaged, f.broken = e.dec.Decode(e.raw, info, 1, &e.pic); f.broken != nil {
		return
	}
	f.w, f.h, f.format = info.W, info.H, string(info.Format)
	one := levels{n: uint64(info.W) * uint64(info.H)}
	for p := e.pic.Pix; len(p) >= 3; p = p[3:] {
		a, b, c := uint64(p[0]), uint64(p[1]), uint64(p[2])
		one.sum[0], one.sum[1], one.sum[2] = one.sum[0]+a, one.sum[1]+b, one.sum[2]+c
		one.squares[0], one.squares[1], one.squares[2] = one.squares[0]+a*a, one.squares[1]+b*b, one.squares[2]+c*c
	}
	e.levels.add(&one)
}

// sample loads a sample of any other source.
func (e *examiner) sample(ctx context.Context, i int, f *finding) {
	r := data.SampleRand(0, 0, i)
	if f.broken = e.src.Load(ctx, &r, i, e.dst); f.broken != nil {
		return
	}
	h := sha256.New()
	for k, field := range e.src.Fields() {
		f.bytes += int64(len(e.dst[k]))
		if !field.Target {
			h.Write(e.dst[k])
		} else if field.DType == npu.I32 && field.Elems() == 1 && f.label < 0 {
			f.label = int(data.I32(e.dst[k])[0])
		}
	}
	h.Sum(f.sum[:0])
	if field := e.src.Fields()[0]; field.DType == npu.F32 && len(field.Shape) == 3 && field.Shape[0] <= 3 {
		v, n := data.F32(e.dst[0]), field.Shape[1]*field.Shape[2]
		m := &moments{n: float64(n)}
		for c := range field.Shape[0] {
			for _, x := range v[c*n:][:n] {
				m.sum[c] += float64(x)
				m.squares[c] += float64(x) * float64(x)
			}
		}
		f.moments = m
	}
}
