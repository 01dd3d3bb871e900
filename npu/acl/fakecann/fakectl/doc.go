// Package fakectl controls a fake CANN that this process has loaded: its switches and its statistics. Tests that open a device in their own process
// use it; those that start processes use the variables FAKE_CANN_* and fakecann.ReadStats.
//
//	f, err := fakectl.Open(dir) // the folder that fakecann.Install returned, before or after the libraries are loaded from it
//	err = f.Set("FAKE_CANN_INJECT", "aclrtMalloc:3:207001")
//	s, err := f.Stats()
//
// It needs cgo and linux. Elsewhere Open returns an error.
package fakectl
