package fakecann

import (
	"errors"
	"path/filepath"
)

// Env lists the variables that make a process use the fake in a folder, with switches behind them ("FAKE_CANN_DEVICES=2").
func Env(dir string, switches ...string) []string {
	return append([]string{
		"ASCEND_HOME_PATH=" + dir,
		"ASCEND_TOOLKIT_HOME=" + dir,
		"ASCEND_OPP_PATH=" + filepath.Join(dir, "opp"),
		"LD_LIBRARY_PATH=" + filepath.Join(dir, "lib64"),
	}, switches...)
}

// TB is the part of testing.TB that Install needs.
type TB interface {
	Helper()
	TempDir() string
	Skip(args ...any)
	Fatal(args ...any)
}

// Install makes a fake in a temporary folder of a test. The test is skipped where there is no C compiler.
func Install(t TB, o Options) string {
	t.Helper()
	dir := t.TempDir()
	switch err := BuildWith(dir, o); {
	case errors.Is(err, ErrNoCompiler):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return dir
}
