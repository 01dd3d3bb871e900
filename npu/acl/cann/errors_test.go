package cann

import (
	"strings"
	"testing"
)

func TestError(t *testing.T) {
	for _, c := range []struct {
		call         string
		code         int32
		fatal        bool
		exit         int
		name, inText string
	}{
		{"aclrtMalloc", CodeOutOfMemory, false, 69, "out of device memory", "hint: use a smaller batch"},
		{"aclrtSetDevice", 507033, true, 69, "the device did not start", "driver, firmware and CANN do not fit"},
		{"aclnnAdd", 507015, true, 69, "exception of an AI core", "resumes from the last checkpoint"},
		{"aclrtSynchronizeStreamWithTimeout", CodeStreamTimeout, false, 69, "a stream is not done in time", "hint: "},
		{"aclrtRecordEvent", 107023, true, 69, "a stream was aborted", "hint: "},
		{"aclrtMalloc", 999999, false, 69, "", "error 999999: text\nhint: look the number up"},
		{"HcclAllReduce", 9, false, 69, "timeout", "hint: another rank"},
		{"HcclAllReduce", 5, false, 69, "not supported", "cannot reduce"},
		{"HcclAllReduce", 1000, false, 69, "", "error 1000: text"},
		{"aclrtStreamAbort", codeAbsent, false, 69, "the installed libraries do not have this function", "aclrtStreamAbort: the installed"},
		{"aclInit", CodeStub, false, 69, "a library for linking was loaded instead of the real one", "devlib"},
	} {
		e := newError(c.call, "", c.code, "text")
		if e.Fatal != c.fatal || e.ExitCode() != c.exit || e.Name() != c.name || !strings.Contains(e.Error(), c.inText) || !strings.Contains(e.Error(), "hint: ") {
			t.Errorf("%s %d: fatal %v, exit code %d, %q, %q", c.call, c.code, e.Fatal, e.ExitCode(), e.Name(), e.Error())
		}
	}
}

// A code has one row, and a code of the runtime that kills the context says that the process must be started again, or what is broken.
func TestTables(t *testing.T) {
	for _, table := range [][]meaning{meanings, hcclMeanings} {
		seen := map[int32]bool{}
		for _, m := range table {
			if seen[m.code] || m.name == "" || strings.HasPrefix(m.hint, "hint") {
				t.Errorf("row %+v", m)
			}
			seen[m.code] = true
		}
	}
}

// CANN's text comes from outside and goes to terminals and logs.
func FuzzClean(f *testing.F) {
	f.Add("EZ9999: Inner Error!\n\tTraceBack (most recent call last):\n\x1b[31m")
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if strings.ContainsAny(got, "\n\r\t\x1b\x00\x7f") || len([]rune(got)) > 1600 {
			t.Errorf("%q", got)
		}
	})
}
