// Package acltest lets tests of a process use the fake CANN of package fakecann, and turn its switches.
//
//	func TestMain(m *testing.M) { acltest.Main(m) }              // builds the fake and points GOTRAIN_CANN_HOME to it
//
//	fake := acltest.Use(t)                                       // skips the test where there is no C compiler; fails it for what was left behind
//	fake.Set("INJECT", "aclrtMalloc:1:207001")                   // until the end of the test
//	dev, err := npu.Open("npu", npu.Options{})
//	fake.Stats().DeviceBlocks
//
// The fake imitates CANN 8.1, or the version that GOTRAIN_TEST_CANN names. A process has one version; Again runs a test in another process with another one.
package acltest
