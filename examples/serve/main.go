// Command serve answers pictures with their classes over HTTP: go run ./examples/serve runs/flowers :8080, then
// curl --data-binary @rose.jpg localhost:8080. Pictures that wait are computed together; a full server makes its clients wait instead of growing.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/gotrain/gotrain/graph/models/resnet" // the networks and devices to include in the binary
	_ "github.com/gotrain/gotrain/graph/models/vit"
	_ "github.com/gotrain/gotrain/npu/cpu"
	"github.com/gotrain/gotrain/train/predict"
)

const places, most = 64, 8 << 20 // requests with their picture in memory, and its bytes

func handler(m *predict.Model, patience time.Duration) http.Handler {
	room := make(chan struct{}, places)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		room <- struct{}{}
		defer func() { <-room }()
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(patience))
		raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		} else if err != nil {
			http.Error(w, err.Error(), http.StatusRequestTimeout)
			return
		}
		switch out, err := m.Predict(r.Context(), predict.Bytes(raw)); {
		case err != nil: // the client has gone, or the server is closing
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case out[0].Err != nil:
			http.Error(w, out[0].Err.Error(), http.StatusBadRequest)
		default:
			json.NewEncoder(w).Encode(out[0].Top(5))
		}
	})
}

// serve answers until ctx ends, and then what was asked before.
func serve(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: serve CHECKPOINT ADDRESS, for example serve runs/quickstart :8080")
	}
	m, err := predict.Open(args[0], predict.WithMaxPixels(20e6))
	if err != nil {
		return err
	}
	defer m.Close()
	s := &http.Server{Addr: args[1], Handler: handler(m, 5*time.Second), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- s.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return s.Shutdown(context.Background())
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // services and containers send SIGTERM
	context.AfterFunc(ctx, stop)                                                           // a second one ends it at once
	if err := serve(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}
