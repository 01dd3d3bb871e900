// Command gen writes the C shims of package cann from the table of package abi:
//
//	go run ./npu/acl/cann/gen -o npu/acl/cann   // writes shims.gen.h and shims.gen.c
//
// A shim is a C function with the exact argument types of the function that it calls through a pointer. Operators have one shim together,
// gt_phase1, which takes the arguments of any operator's first phase as an array of unions and makes the exactly typed call: a float passed
// as an integer, or an int8_t as an int64_t, would arrive in another register or with other bits.
package main
