// Package npu is the contract between gotrain and a device that computes: an accelerator, or the host playing one.
//
// # An op is data
//
// An [Op] names a kind (kinds.go lists them with attributes, inputs and outputs) and describes its tensors by shape, dtype and layout. A
// device is asked three things about it, all before the first step: whether it knows the kind ([Device].Has), how its best kernel wants the
// tensors laid out (Choose), and for the prepared [Kernel] (Compile). A kernel is bound to memory once (Bind) and launched as often as
// wanted.
//
//	dev, err := npu.Open("cpu", npu.Options{Threads: 1})   // import _ ".../npu/cpu" for its side effect
//	op, err = dev.Choose(op)                               // concrete layouts; the plan converts where producers disagree
//	k, err := dev.Compile(op)
//	l, err := k.Bind(args, workspace)                      // inputs, then outputs
//	s, err := dev.NewStream("compute")
//	err = s.Run([]npu.Launch{l})                           // returns at once
//	err = s.Sync(ctx)                                      // the first error of the stream surfaces here
//
// # Asynchronous
//
// A [Stream] executes in order on a thread of the device's own; an [Event] orders streams. A rank opens one device and may call it from any
// goroutine. Errors of kernels are delayed to the next wait and carry the op's name.
//
// # Layouts
//
// Shapes are always logical (NCHW, OIHW). A [Layout] other than [Plain] is a token that only the device which made it understands: equal
// tokens mean equal memory, and that is all that others may conclude. [Device].Bytes tells the size, padding included.
//
// # Devices
//
// npu/ref is plain Go with float64 accumulation: the oracle of every kernel test. npu/cpu is the host with oneDNN and C kernels. A device
// registers a family name from its init.
package npu
