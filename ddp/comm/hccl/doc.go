// Package hccl is the transport between Ascend NPUs. It moves device memory by HCCL, Huawei's library of collectives, and agrees on everything else
// through a control communicator on the host.
//
//	import _ "github.com/gotrain/gotrain/ddp/comm/hccl"            // it registers itself for the devices of package npu/acl
//
//	c, err := comm.ForDevice(ctx, comm.Opening{Control: control, Device: dev})
//	h, err := c.(comm.Ordered).AllReduceAfter(ctx, ready, bucket, comm.Sum)
//	err = update.Wait(h.(comm.OnDevice).Event())                   // the stream waits, the host does not
//
// # What runs where
//
// Collectives of device memory are tasks on a stream of the transport, between two events. The host enqueues them and goes on; a goroutine follows each to
// its end, for handles, times and errors. Collectives of host memory run in a second group of the control communicator; their place among the others is
// kept. Send and Recv go through page-locked memory (Note [pairs]). A barrier is an agreement of the hosts.
//
// HCCL reduces f32, bf16, f16, i64, i32 and i8. A reduction of u8 or f64 in device memory is refused; in host memory it works.
//
// # What HCCL does not tell
//
// HCCL hangs, for half an hour by default, where a rank is late or gone, or calls something else. So each call is announced to all ranks (Note
// [announcements]), and errors have names: *comm.TimeoutError lists the ranks whose devices did not come, *comm.MismatchError both calls,
// *comm.PeerError the rank that died or gave up, with its reason. *StallError is a collective that all ranks began and that does not end: a link or a
// device hangs.
//
// A mismatch breaks the group, because HCCL has the calls when it is found. With the option hccl_check = "before" it does not; every call then costs a
// round trip.
//
// # When the group breaks
//
// Every rank learns the reason from the control communicator within about a tenth of a second. A rank with unfinished collectives aborts its stream; CANN
// then loses the device, so the process must end. The next process starts from the checkpoint. HCCL's communicator is not destroyed after that, because
// destroying it waits for peers that may be gone.
//
// # Opening
//
// Ranks compare settings and devices, rank 0 makes the root information and sends it through the control communicator, all connect, and a first reduction
// builds the links and checks a sum. Two ranks on one device of a host, and an error of any rank, are named on all ranks. Ranks may be on several
// hosts: HCCL then gets the address by which the hosts met (HCCL_IF_IP), unless the user chose one.
//
// Package settings has the environment variables and options; docs/hccl.md lists them.
//
// # Status
//
// Tested with a fake in Go and with the fake CANN of package npu/acl/fakecann, in one process and in several. Signatures, enumerations and the
// layout of the configuration were compared with real headers. Nothing has run on an NPU: deadlines, the abort of a stream with a collective on it,
// and the order of sums are to be seen there first.
package hccl
