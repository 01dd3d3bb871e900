// Package nputest is the suite that the kernels of every device must pass. A device's test opens it and calls Run:
//
//	func TestKernels(t *testing.T) {
//		dev, err := npu.Open("mine", npu.Options{})
//		…
//		nputest.Run(t, dev, nputest.Options{})
//	}
//
// A program that wants a report, as a check of real hardware does, calls Check, which needs no testing.T.
//
// # Cases
//
// A [Case] is data: tensors with their values, and one or two calls. The last call is of the kind under test. Cases returns those of a kind with
// activations of a type: small shapes, but the ones that kernels get wrong (extents of 1, odd extents, asymmetric padding, strides that leave elements
// over, groups, ties, rows that are ignored, outputs that nobody wants, results in place of inputs). They depend on the seed only.
//
// # How a call is judged
//
// Results are compared with package npu/ref. Kinds that choose, move or count must give the same values; others have the bound of their kind and
// of the result's type (bounds.go). A call also fails if it changes memory other than its results and its workspace, or if a second run of the same launch
// gives other bits. Results and workspace hold NaN before the call, so a kernel that does not write all of a result, or reads what it never wrote, is found.
//
// Device memory is reached through CopyIn and CopyOut only.
//
// # Opaque results
//
// A device may keep what only its own gradient kernel reads in a form of its own: the index of maxpool, statistics, log-sums (marked saved in npu/kind). Such a
// result is not looked at where its layout is not plain; it goes from the forward call to the gradient on the device, and the gradient is compared. Every
// other input of the second call is what package ref computed, so that errors do not add up.
package nputest
