package images

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images/augment"
)

// everything is a pipeline that always does something.
var everything = augment.Pipeline{
	Policy: augment.RandAugment{Magnitude: 9, Std: 0.5},
	Jitter: augment.Jitter{Brightness: 0.4, Contrast: 0.4, Saturation: 0.4, Hue: 0.1},
	Erase:  augment.Erase{Prob: 1, Noise: true},
	Fill:   [3]byte{124, 116, 104},
}

// The bytes that are drawn for augmentation become the floats that are drawn without it, mirrored or not, resized or copied, grey or in colour.
func TestBytesBecomeTheSameFloats(t *testing.T) {
	colour := chelsea(t)
	grey := toGray(colour)
	grey.Pix = slices.Grow(grey.Pix, slack)
	r := data.NewRand(5)
	for n := range 60 {
		src, lut := colour, planes(ImageNet, 3)
		if n%3 == 2 {
			src, lut = grey, lut[:1]
		}
		w, h := 1+r.IntN(90), 1+r.IntN(90)
		var tr Transform = RandomResizedCrop{Width: w, Height: h, Flip: 0.5}
		if n%4 == 3 {
			tr = PadCrop{Width: w, Height: h, Pad: 50, Flip: 0.5}
		}
		v := tr.View(r, src.W, src.H)
		var a, b canvas
		want, got := make([]float32, len(lut)*w*h), make([]float32, len(lut)*w*h)
		a.render(src, 1, v, w, h, lut, want)
		b.plan(src.W, src.H, 1, v, w, h)
		b.drawBytes(src, 1, v, w, h)
		emitAll(&b.drawn, lut, got)
		for i := range want {
			if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
				t.Fatalf("%+v of %d channels: value %d is %v, want %v", v, src.C, i, got[i], want[i])
			}
		}
	}
}

// Augmentation depends on seed, epoch and sample, and on nothing else; without it nothing changes.
func TestAugmentationIsAFunctionOfTheSample(t *testing.T) {
	root := flowers(t)
	load := func(p augment.Pipeline, seed uint64, epoch, i int) []float32 {
		f, err := NewFolder(root, Options{Transform: RandomResizedCrop{Width: 64, Height: 48, Flip: 0.5}, Norm: ImageNet, Augment: p})
		if err != nil {
			t.Fatal(err)
		}
		dst := [][]byte{make([]byte, 3*64*48*4), make([]byte, 4)}
		r := data.SampleRand(seed, epoch, i)
		if err := f.Load(context.Background(), &r, i, dst); err != nil {
			t.Fatal(err)
		}
		return data.F32(dst[0])
	}
	a := load(everything, 1, 2, 3)
	if !slices.Equal(a, load(everything, 1, 2, 3)) {
		t.Error("the same sample differs")
	}
	if slices.Equal(a, load(augment.Pipeline{}, 1, 2, 3)) {
		t.Error("nothing was augmented")
	}
	for _, k := range [][3]int{{2, 2, 3}, {1, 3, 3}, {1, 2, 4}} {
		if slices.Equal(a, load(everything, uint64(k[0]), k[1], k[2])) {
			t.Errorf("seed, epoch, sample %v give the picture of 1 2 3", k)
		}
	}
}

// The same batches come for any number of ranks and workers, and after a restart in the middle.
func TestAugmentedBatchesForAnyDivision(t *testing.T) {
	root := flowers(t)
	f, err := NewFolder(root, Options{Transform: RandomResizedCrop{Width: 32, Height: 32, Flip: 0.5}, Norm: ImageNet, Augment: everything})
	if err != nil {
		t.Fatal(err)
	}
	mixed, err := augment.NewMixed(f, augment.Mix{Mixup: 0.8, Cutmix: 1, Classes: 5, Smoothing: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	const global, batches = 24, 3
	read := func(world, workers int, from data.State, n int) map[string][]byte {
		out := map[string][]byte{}
		for rank := range world {
			l, err := data.NewLoader(mixed, data.Options{Batch: global / world, Rank: rank, World: world, Seed: 9, Shuffle: true, Workers: workers,
				From: from, Repeat: 3})
			if err != nil {
				t.Fatal(err)
			}
			for range n {
				b, err := l.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for row := range b.Valid {
					var all []byte
					for k, field := range mixed.Fields() {
						all = append(all, b.Fields[k][row*field.Bytes():][:field.Bytes()]...)
					}
					at := l.Sampler().Position(b.At, row)
					out[fmt.Sprintf("epoch %d position %d", b.At.Epoch, at)] = all
				}
				b.Release()
			}
			l.Close()
		}
		return out
	}
	want := read(1, 1, data.State{}, batches)
	if len(want) != global*batches {
		t.Fatalf("%d positions, want %d", len(want), global*batches)
	}
	for _, c := range [][2]int{{1, 3}, {2, 2}, {3, 1}, {4, 3}} {
		for at, bytes := range read(c[0], c[1], data.State{}, batches) {
			if !slices.Equal(bytes, want[at]) {
				t.Errorf("%d ranks, %d workers: %s differs", c[0], c[1], at)
			}
		}
	}
	for at, bytes := range read(2, 2, data.State{Consumed: global}, batches-1) {
		if !slices.Equal(bytes, want[at]) {
			t.Errorf("resumed: %s differs", at)
		}
	}
}

// A warm loader allocates nothing for augmentation.
func TestAugmentationAllocatesNothing(t *testing.T) {
	f, err := NewFolder(flowers(t), Options{Transform: RandomResizedCrop{Width: 64, Height: 64}, Norm: ImageNet, Augment: everything})
	if err != nil {
		t.Fatal(err)
	}
	dst := [][]byte{make([]byte, 3*64*64*4), make([]byte, 4)}
	n := 0
	load := func() {
		r := data.SampleRand(1, 0, n)
		if err := f.Load(context.Background(), &r, n%20, dst); err != nil {
			t.Fatal(err)
		}
		n++
	}
	for range 40 {
		load()
	}
	plain, err := NewFolder(flowers(t), Options{Transform: RandomResizedCrop{Width: 64, Height: 64}, Norm: ImageNet})
	if err != nil {
		t.Fatal(err)
	}
	augmented := testing.AllocsPerRun(100, load)
	f = plain
	for range 40 {
		load()
	}
	if without := testing.AllocsPerRun(100, load); augmented > without+0.5 {
		t.Errorf("%g allocations a picture, %g without augmentation", augmented, without)
	}
}

func flowers(t testing.TB) string {
	root, err := data.Locate("flowers/train")
	if err != nil {
		t.Fatal(err)
	}
	return root
}
