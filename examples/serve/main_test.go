package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models/resnet"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images"
	"github.com/gotrain/gotrain/train/predict"
)

// trained is the folder of a small ResNet, for pictures of side x side pixels, that was trained for a few steps.
func trained(t testing.TB, width, side int) string {
	t.Helper()
	cfg := resnet.Config{Blocks: [4]int{1, 1, 1, 1}, Width: width, Classes: 7, SmallStem: true}
	raw, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	src, err := data.NewSynthetic(1, 64, 7, 3, side, side)
	if err != nil {
		t.Fatal(err)
	}
	prep, err := json.Marshal(images.Preparation{Channels: 3, Height: side, Width: side, Short: side})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tr, err := train.New(train.WithModel(func(b *graph.Builder, in train.Inputs) train.Outputs {
		loss, n := b.CrossEntropy(resnet.Build(b, in["image"], cfg), in["label"])
		return train.Outputs{Loss: loss, Count: n}
	}), train.WithData(src, 8), train.WithSteps(2), train.WithLR(0.1), train.WithOptimizer(optim.Default(optim.SGD, 0)), train.WithDevice("cpu", 1),
		train.WithCheckpoints(dir, 0), func(c *train.Config) {
			c.ConvAlgorithm = train.DirectConv
			c.Network = &checkpoint.Network{Family: "resnet", Config: raw, Prepare: prep}
		})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func encoded(t testing.TB, w, h int) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		img.Set(i%w, i/w, color.NRGBA{uint8(i), uint8(i / w), uint8(i % 7), 255})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func post(c *http.Client, url string, body io.Reader) (code int, answer string, err error) {
	r, err := c.Post(url, "application/octet-stream", body)
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	return r.StatusCode, string(raw), err
}

// The server answers many clients at once, with good pictures among requests of every bad kind; its memory does not grow, and it ends.
func TestServer(t *testing.T) {
	m, err := predict.Open(trained(t, 8, 32), predict.WithMaxPixels(1e6), predict.WithDevice("cpu", 1, nil))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(handler(m, time.Second))
	good, bomb := encoded(t, 50, 40), encoded(t, 2000, 600)
	_, want, err := post(s.Client(), s.URL, bytes.NewReader(good))
	if err != nil || strings.Count(want, "probability") != 5 {
		t.Fatal(want, err)
	}
	slow, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nonly this"); err != nil {
		t.Fatal(err)
	}
	var answered atomic.Int64
	load := func(rounds int) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range rounds {
					for _, c := range []struct {
						body []byte
						code int
						says string
					}{
						{good, 200, "probability"}, {nil, 400, "empty"}, {[]byte("GET out"), 400, "not a JPEG"}, {good[:len(good)/2], 400, "decoding png"},
						{bomb, 400, "more than the limit"}, {good, 200, "probability"},
					} {
						code, answer, err := post(s.Client(), s.URL, bytes.NewReader(c.body))
						if err != nil || code != c.code || !strings.Contains(answer, c.says) {
							t.Errorf("%d %q %v, want %d %q", code, answer, err, c.code, c.says)
							return
						}
						answered.Add(1)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 200*time.Microsecond) // a client that goes away
					if r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(good)); err == nil {
						if a, err := s.Client().Do(r); err == nil {
							a.Body.Close()
						}
					}
					cancel()
				}
			})
		}
		wg.Wait()
	}
	load(5)
	before := heap()
	load(25)
	if grown := heap() - before; grown > 2<<20 {
		t.Errorf("the heap grew by %d bytes over %d requests", grown, answered.Load())
	}
	// The body is larger than what a request may have; the server may close the connection before all of it is sent.
	if code, answer, err := post(s.Client(), s.URL, bytes.NewReader(make([]byte, most+1))); err == nil && code != http.StatusRequestEntityTooLarge {
		t.Errorf("a huge body: %d %q", code, answer)
	}
	slow.SetReadDeadline(time.Now().Add(time.Minute))
	if answer, err := io.ReadAll(slow); err != nil || !strings.Contains(string(answer), " 408 ") {
		t.Errorf("a client that does not send its picture: %q %v", answer, err)
	}
	s.Close()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if st := m.Stats(); st.Compiled > 6 || st.Inputs == st.Batches {
		t.Errorf("no batches: %+v", st)
	}
}

func heap() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// The example is short.
func TestLength(t *testing.T) {
	raw, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(raw, []byte("\n")); n >= 80 {
		t.Errorf("main.go has %d lines, want fewer than 80", n)
	}
}

// A wrong command line, and an address that another server has, end it with an error; a signal without one.
func TestServeStartsOrSaysWhyNot(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := trained(t, 8, 16)
	for want, args := range map[string][]string{"usage: serve": {dir}, "no checkpoint": {t.TempDir(), ":0"}, "in use": {dir, taken.Addr().String()}} {
		if err := serve(t.Context(), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := serve(ctx, []string{dir, "127.0.0.1:0"}); err != nil && !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
