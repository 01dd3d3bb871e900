package settings_test

import (
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm/hccl/settings"
)

func Example() {
	s, err := settings.Read(settings.Input{
		Env:   map[string]string{"HCCL_TOPOLOGY": "tree", "HCCL_BUFFER_SIZE": "104857600", "HCCL_TIMEOUT": "900"},
		Ranks: 8,
		SoC:   "A2",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s)

	_, err = settings.Read(settings.Input{Env: map[string]string{"HCCL_TOPOLOGY": "star", "HCCL_DETERMINISTIC": "1"}, Ranks: 8})
	fmt.Println(err)
	// Output:
	// settings of HCCL, the same on all ranks:
	//   buffer                       100 MB                  environment: HCCL_BUFFER_SIZE=104857600 (bytes, rounded up); device memory for two of them
	//   HCCL_ALGO                    level0:NA;level1:H-D_R  environment: HCCL_TOPOLOGY=tree; level 1 is between machines
	//   deadline                     900 s                   environment: HCCL_TIMEOUT=900; for a silent rank, if the recipe's is not shorter
	//   HCCL_CONNECT_TIMEOUT         900 s                   environment: HCCL_TIMEOUT=900
	//   HCCL_EXEC_TIMEOUT            960 s                   environment: HCCL_TIMEOUT=900 and a minute, so that gotrain's error comes first
	//   deterministic                true                    by default of gotrain; sums have the same bits from run to run
	//   HCCL_HOST_SOCKET_PORT_RANGE  auto                    by default of gotrain; two jobs on a machine do not collide
	//   HCCL_NPU_SOCKET_PORT_RANGE   auto                    by default of gotrain; two jobs on a machine do not collide
	// hccl: HCCL_DETERMINISTIC=1: it is none of false, true, strict
	// hint: HCCL reads words here: true or false
	// hccl: HCCL_TOPOLOGY=star: it is none of mesh, fullmesh, auto, tree, ring
	// hint: HCCL itself does not read this variable; unset it, or set HCCL_ALGO to choose an algorithm by its own name
}
