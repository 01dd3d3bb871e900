package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/ddp/launch"
)

// Node is a host of a job that can also answer questions: *Here or *Agent.
type Node interface {
	launch.Host
	Connect(ctx context.Context) error // until then, no other method but Name may be called
	Ask(ctx context.Context, q Question) (Answer, error)
	Close()
}

// Here is this machine as a Node. No agent is needed.
type Here struct {
	launch.Local
	responder *responder
}

// NewHere returns this machine, under its name in the user's list.
func NewHere(name string) *Here {
	return &Here{Local: launch.Local{As: name}, responder: newResponder()}
}

// Connect does nothing.
func (h *Here) Connect(context.Context) error { return nil }

// Ask answers at once.
func (h *Here) Ask(ctx context.Context, q Question) (Answer, error) {
	h.responder.begin(q)
	a := h.responder.answer(ctx, q)
	return a, a.err(h.Name())
}

// Close ends what questions left open.
func (h *Here) Close() { h.responder.close() }

// err is the error of an answer.
func (a Answer) err(host string) error {
	if a.Error == "" {
		return nil
	}
	return launch.WithCode(launch.ExitUnavailable, fmt.Errorf("remote: host %s: %w", host, errors.New(a.Error)))
}
