// Package abi is the table of C functions of CANN that gotrain calls: runtime (ACL), operator base (nnopbase), operators (aclnn) and
// collectives (HCCL). Everything that must agree with the real libraries is made of it: the shims of package cann, the exports of the fake
// CANN of the tests, and the check against installed headers. The package is pure; it needs neither cgo nor CANN.
//
// An operator X has two functions. Its row in ops.tsv lists the arguments of the first, aclnnXGetWorkspaceSize, which continue with
// uint64_t* workspaceSize and aclOpExecutor** executor; the second, aclnnX, always takes (void* workspace, uint64_t size, aclOpExecutor*,
// aclrtStream). Codes of arguments:
//
//	T, To        aclTensor*, input or output (the C type of both is a pointer)
//	S            aclScalar*
//	IA FA BA     aclIntArray*, aclFloatArray*, aclBoolArray*
//	TL TLo SL    aclTensorList*, input or output; aclScalarList*
//	str          char*
//	dt           aclDataType, a C int
//	int          C int
//	i8 i64 u64   int8_t, int64_t, uint64_t
//	f32 f64 bool float, double, bool
//
// The other tables (acl.sig, nnopbase.sig, hccl.sig) list C functions with classes of arguments: i1 i4 i8 signed integers and enums by size
// in bytes, u4 u8 unsigned ones, f4 f8 floats, b a bool, p any pointer or handle, sN a structure of N bytes by value. The first class is that of
// the result.
//
// The signatures were compared by a compiler with the headers of CANN 8.1.RC1 and with those in the torch-npu wheels 2.5.1, 2.7.1.post4 and
// 2.14.0, except for operators without a header in 8.1 ("-"), which were read in documentation. Nothing of this package has run on an NPU.
package abi
