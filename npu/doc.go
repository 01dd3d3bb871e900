// Package npu is the contract between gotrain and a device that computes: an accelerator, or the host acting as one.
//
// # An op is data
//
// An [Op] names a kind (kinds.go lists them with attributes, inputs and outputs) and describes its tensors by shape, dtype and layout. Before the first step
// a device answers three questions about it: whether it supports the kind ([Device].Has), which tensor layouts its best kernel expects (Choose), and finally
// the prepared [Kernel] (Compile). A kernel is bound to memory once (Bind) and launched any number of times.
//
//	dev, err := npu.Open("cpu", npu.Options{Threads: 1})   // import _ ".../npu/cpu" for its side effect
//	op, err = dev.Choose(op)                               // concrete layouts; the plan converts where producers differ
//	k, err := dev.Compile(op)
//	l, err := k.Bind(args, workspace)                      // inputs, then outputs
//	s, err := dev.NewStream("compute")
//	err = s.Run([]npu.Launch{l})                           // returns immediately
//	err = s.Sync(ctx)                                      // the first error of the stream surfaces here
//
// # Asynchronous execution
//
// A [Stream] executes its work in order on its own thread; an [Event] orders streams. A rank opens one device and may call it from any goroutine. Kernel
// errors surface at the next wait and carry the op's name.
//
// # Layouts
//
// Shapes are always logical (NCHW, OIHW). A [Layout] other than [Plain] is a token that only the device that made it understands: equal
// tokens mean equal memory, and nothing else follows from them. [Device].Bytes returns the size, including padding.
//
// # Devices
//
// Package npu/kind is the table of what is known of each kind; npu/nputest is the suite that the kernels of every device pass.
// npu/ref is plain Go with float64 accumulation, the oracle of every kernel test. npu/cpu is the host with oneDNN and C kernels. A device
// registers its family name in init.
package npu
