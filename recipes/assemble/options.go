package assemble

import (
	"strings"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/recipes"
)

// options divides train.device_options between the device and the transport that moves its memory: NAME_… is for the transport of that name.
func options(t recipes.Train) (device, transport map[string]string, err error) {
	device, err = t.Options()
	for key, value := range device {
		for _, name := range comm.Transports() {
			if !strings.HasPrefix(key, name+"_") {
				continue
			}
			if transport == nil {
				transport = map[string]string{}
			}
			transport[key] = value
			delete(device, key)
			break
		}
	}
	return device, transport, err
}
