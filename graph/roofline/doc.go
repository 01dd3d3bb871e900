// Package roofline says how far the kernels of a step are from what bounds them (Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009).
//
// A kernel cannot be faster than its arithmetic at the peak of the processor, or than its bytes at the speed of memory:
//
//	bound = max(FLOP / peak, bytes / rate)
//
// Both speeds are measured in the same run ([npu.Limits]). What a kernel must do follows from its op alone ([CostOf]): operations as graph/op counts them, but
// no products with the zeros around a picture, and every byte that has to be read or written once, whatever a kernel does in truth. So the ratio of
// bound and time shows what a kernel loses by extra passes, by waiting, or by arithmetic that is not counted, and [Group.Reason] names what is
// known about that.
//
// A rate depends on the working set: a kernel whose tensors fit in a cache is bound by the cache, a larger one by memory. But what a cache can
// hold of its tensors may be there from the kernel before, so a kernel may exceed its bound by that; a time below [Kernel.Least], which grants it the
// whole cache, cannot be true. [New] reports such kernels as [Report.Exceeded], and whoever sees one should distrust the measurement.
package roofline
