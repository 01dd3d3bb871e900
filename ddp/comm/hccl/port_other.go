//go:build !(cgo && linux)

package hccl

import (
	"context"
	"errors"

	"github.com/gotrain/gotrain/ddp/comm"
)

// New fails: NPUs need cgo and Linux.
func New(context.Context, comm.Opening) (*Comm, error) {
	return nil, errors.New("hccl: this binary was built without cgo, or not for Linux, so it has no NPUs")
}
