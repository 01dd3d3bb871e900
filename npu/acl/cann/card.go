package cann

import "fmt"

// Card is what DCMI, the driver's library for management, says about a chip. A number that it does not tell is negative.
type Card struct {
	Card, Chip  int     // NPU and chip within it, as npu-smi counts
	Physical    int     // as hccn_tool and /dev/davinciN count
	Health      int     // 0 is good
	Temperature int     // °C
	Power       float64 // W
	Load        int     // percent
	MemoryMB    int64
	UsedMB      int64
}

// dcmiCodes are the codes of DCMI that say what to do.
var dcmiCodes = map[int]string{
	-8001: "a wrong argument", -8002: "no permission", -8003: "no memory", -8005: "an internal error, as in containers without the driver's files",
	-8006: "timeout", -8007: "wrong device", -8008: "no device", -8012: "not ready", -8013: "not allowed in a container", -8015: "the device is being reset",
	-8017: "the device is being upgraded", -8020: "in use by another container", -8255: "not supported",
}

func dcmiError(call string, code int) error {
	if text := dcmiCodes[code]; text != "" {
		return fmt.Errorf("%s: %d (%s)", call, code, text)
	}
	return fmt.Errorf("%s: %d", call, code)
}
