package train

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
)

// reason sends one rank's error, with its exit code, to all ranks. On that rank, mine is the error.
func (t *Trainer) reason(ctx context.Context, rank int, mine error) (error, error) {
	text := ""
	if mine != nil {
		text = mine.Error()
	}
	code, text, err := t.broadcast(ctx, rank, launch.ExitCode(mine), text[:min(len(text), telling)])
	if err != nil {
		return nil, err
	}
	out := launch.WithCode(code, errors.New(text))
	if t.comm.Rank() != rank {
		out = launch.WithBlame(out, rank)
	}
	return out, nil
}

// telling is the maximum length of a text that one rank sends to the others.
const telling = 4096

// broadcast sends a small number and a text from one rank to all.
func (t *Trainer) broadcast(ctx context.Context, from, code int, text string) (int, string, error) {
	b := make([]byte, 4+telling)
	if t.comm.Rank() == from {
		binary.LittleEndian.PutUint16(b, uint16(code))
		binary.LittleEndian.PutUint16(b[2:], uint16(len(text)))
		copy(b[4:], text)
	}
	ctx, cancel := t.patient(ctx)
	defer cancel()
	if err := comm.Wait(ctx)(t.comm.Broadcast(ctx, comm.Host(b, npu.U8), from)); err != nil {
		return 0, "", fmt.Errorf("train: rank %d: %w", t.comm.Rank(), err)
	}
	n := int(binary.LittleEndian.Uint16(b[2:]))
	return int(binary.LittleEndian.Uint16(b)), string(b[4:][:n]), nil
}
