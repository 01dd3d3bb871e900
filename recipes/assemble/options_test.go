package assemble

import (
	"context"
	"maps"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/recipes"
)

func TestOptionsOfTheTransport(t *testing.T) {
	comm.RegisterTransport("pigeon", -1, func(npu.Device) bool { return false },
		func(context.Context, comm.Opening) (comm.Communicator, error) { return nil, nil })
	device, transport, err := options(recipes.Train{DeviceOptions: "pigeon_post=air deterministic=false pigeons=9"})
	if err != nil || !maps.Equal(device, map[string]string{"deterministic": "false", "pigeons": "9"}) ||
		!maps.Equal(transport, map[string]string{"pigeon_post": "air"}) {
		t.Error(device, transport, err)
	}
	if device, transport, err = options(recipes.Train{}); err != nil || device != nil || transport != nil {
		t.Error(device, transport, err)
	}
	if _, _, err = options(recipes.Train{DeviceOptions: "pigeon_post"}); err == nil {
		t.Error("an option without a value was accepted")
	}
}
