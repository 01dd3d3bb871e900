package main

import (
	_ "github.com/gotrain/gotrain/ddp/comm/hccl" // as does the transport between NPUs
	_ "github.com/gotrain/gotrain/ddp/comm/staged"
	_ "github.com/gotrain/gotrain/npu/acl" // the devices of this program register themselves
	_ "github.com/gotrain/gotrain/npu/cpu"
	_ "github.com/gotrain/gotrain/npu/ref"
)
