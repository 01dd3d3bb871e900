//go:build cgo && linux

package hccl

import (
	"log/slog"
	"os"
	"testing"

	"github.com/gotrain/gotrain/npu/acl/acltest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // each opening prints its settings
	if os.Getenv(envRole) != "" {
		os.Exit(rank())
	}
	acltest.Main(m)
}
