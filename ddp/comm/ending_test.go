package comm

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestEndingWakesAllWhoWait(t *testing.T) {
	var mu sync.Mutex
	var e Ending
	want, got := errors.New("broken"), make(chan error, 2)
	for range 2 {
		go func() {
			mu.Lock()
			got <- e.Wait(&mu, t.Context(), t.Context(), func() string { return "call" })
		}()
	}
	mu.Lock()
	done := e.Done()
	if e.Over() || !e.Finish(want) || e.Finish(nil) || !e.Over() {
		t.Error("a call ends once")
	}
	mu.Unlock()
	for range 2 {
		if err := <-got; err != want {
			t.Errorf("Wait: %v, want %v", err, want)
		}
	}
	<-done
	<-e.Done()
	mu.Lock()
	if err := e.Wait(&mu, t.Context(), t.Context(), nil); err != want || e.Err() != want {
		t.Errorf("after the end: %v", err)
	}
	mu.Lock() // Wait has unlocked it
}

// A wait that ends first leaves the call alone; one that ends with the call stays for the call's own error.
func TestEndingAfterTheTimeIsOver(t *testing.T) {
	for _, with := range []bool{false, true} {
		var mu sync.Mutex
		var e Ending
		own, end := context.WithCancel(context.Background())
		ctx, cancel := context.WithCancel(own)
		if with {
			end()
		}
		cancel()
		time.AfterFunc(lateness/10, func() {
			mu.Lock()
			defer mu.Unlock()
			e.Finish(errors.New("the peer died"))
		})
		mu.Lock()
		err := e.Wait(&mu, ctx, own, func() string { return "all-reduce 7" })
		if with != (err != nil && err.Error() == "the peer died") {
			t.Errorf("the call's context ended too: %v; Wait: %v", with, err)
		}
		if !with && (!errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "waiting for all-reduce 7")) {
			t.Errorf("Wait: %v", err)
		}
		end()
	}
}

func TestEndingOfEqualDeadlines(t *testing.T) {
	own, end := context.WithTimeout(t.Context(), time.Hour)
	defer end()
	same, end2 := context.WithCancel(own)
	defer end2()
	sooner, end3 := context.WithTimeout(own, time.Minute)
	defer end3()
	if !endsWith(own, same) || endsWith(own, sooner) || endsWith(t.Context(), own) || !endsWith(sooner, own) {
		t.Error("deadlines are compared wrongly")
	}
}
