//go:build e2e

package main

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gotrain/gotrain/train/predict"
)

var requests = flag.Int("requests", 50_000, "requests of TestMemoryStaysFlat")

// Memory is what it was after the first tenth of the requests, one in eight of which is bad.
func TestMemoryStaysFlat(t *testing.T) {
	m, err := predict.Open(trained(t, 1, 8), predict.WithMaxPixels(1e6), predict.WithDevice("cpu", 1, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := httptest.NewServer(handler(m, 5*time.Second))
	defer s.Close()
	good, bad := encoded(t, 8, 8), []byte("no picture")
	var sent, failed atomic.Int64
	load := func(until int64) {
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for {
					i := sent.Add(1)
					if i > until {
						return
					}
					body, want := good, http.StatusOK
					if i%8 == 0 {
						body, want = bad, http.StatusBadRequest
					}
					r, err := s.Client().Post(s.URL, "", bytes.NewReader(body))
					if err != nil {
						failed.Add(1)
						continue
					}
					io.Copy(io.Discard, r.Body)
					r.Body.Close()
					if r.StatusCode != want {
						failed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		sent.Store(until)
	}
	begin := time.Now()
	var heaps, resident []int64
	for tenth := range 10 {
		load(int64(*requests) * int64(tenth+1) / 10)
		heaps, resident = append(heaps, heap()), append(resident, rss())
		t.Logf("%d requests in %v: heap %d KiB, resident %d KiB", sent.Load(), time.Since(begin).Round(time.Second), heaps[tenth]>>10, resident[tenth]>>10)
	}
	if failed.Load() > 0 {
		t.Errorf("%d of %d requests failed", failed.Load(), *requests)
	}
	if grown := heaps[9] - heaps[0]; grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if grown := resident[9] - resident[0]; grown > 8<<20 {
		t.Errorf("resident memory grew by %d bytes", grown)
	}
	t.Logf("%+v", m.Stats())
}

// rss is the resident memory of this process, 0 where the system does not tell.
func rss() int64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), "VmRSS:")
	n, err := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}
