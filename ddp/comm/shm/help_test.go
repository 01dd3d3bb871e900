package shm

import "github.com/gotrain/gotrain/npu"

func nptr(b npu.Buffer) npu.Ptr { return npu.Ptr{Buf: b} }
