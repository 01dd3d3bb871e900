//go:build cgo && linux

package cann

/*
#include "dcmi.h"
#include <stdlib.h>
*/
import "C"

import "unsafe"

// ReadDCMI asks the driver's libdcmi about all chips of the machine. It may hang where a driver does: ask in a process that can be killed.
func ReadDCMI(file string) ([]Card, error) {
	h, err := dlopen(file)
	if err != nil {
		return nil, err
	}
	chips := (*[C.GT_DCMI_CHIPS]C.gt_chip)(C.calloc(C.GT_DCMI_CHIPS, C.sizeof_gt_chip))
	defer C.free(unsafe.Pointer(chips))
	var call *C.char
	var n C.int
	if code := C.gt_dcmi(h, &chips[0], &n, &call); code != 0 {
		return nil, dcmiError(C.GoString(call), int(code))
	}
	var l []Card
	for _, c := range chips[:n] {
		l = append(l, Card{Card: int(c.card), Chip: int(c.chip), Physical: int(c.physical), Health: int(c.health), Temperature: int(c.temperature),
			Power: max(-1, float64(c.power)/10), Load: int(c.load), MemoryMB: int64(c.memory), UsedMB: int64(c.used)})
	}
	return l, nil
}
