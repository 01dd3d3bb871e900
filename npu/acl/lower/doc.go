// Package lower translates ops of package npu into calls of aclnn, CANN's operator library. It is pure: no cgo, no device, no memory. Lower makes a
// Program of an op: aclnn calls in order, whose tensors are views of the op's inputs and outputs, of temporaries and of constants. Package acl executes
// programs.
//
//	p, err := lower.Lower(op, caps)
//	fmt.Println(p) // Mm(in0[64 128], in1[128 32], out0[64 32], 0)
//
// Arguments of a call that are plain numbers are the same in all launches, but for those with an Elem: an element of an input, which the host must know when it
// launches (Program.Host). A When leaves a call out of launches in which such an element has, or has not, a certain value.
//
// Caps says what the device and its CANN have: the SoC, the version, the operators that its libraries export. A kind is lowered as the first form that
// Caps allows; Has tells whether there is one.
//
// # Memory
//
// A Tensor never owns memory. Its Base is an input or output of the op (bound by the caller), a temporary (its place within the scratch memory of the
// launch is Program.Temps[i].Offset; temporaries whose lives do not overlap share memory) or a constant (Program.Consts[i], made once per device and
// shared by key). Strides and offsets count elements, as those of aclCreateTensor.
//
// An output may share memory with an input where npu's kinds allow it, and a program is right in both cases. Where that takes different calls, Call.If
// says which calls belong to which case. An output that the caller does not want, where npu's kinds allow that, takes its memory from Program.Spare.
package lower

//go:generate go test . -run "TestDocument|TestPrograms" -update
