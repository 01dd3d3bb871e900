package pmix

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu/solib"
)

const library = "libpmix.so.2"

// ErrMissing is wrapped by the error for a library that is not there.
var ErrMissing = errors.New(library + " is not installed")

const missingHint = "install it (Debian and Ubuntu: libpmix2), or name it in GOTRAIN_PMIX"

// Find returns the library to open. It loads it, so that a library that cannot be loaded is found out now.
func Find(lookup launch.Lookup) (string, error) {
	if own, _ := lookup("GOTRAIN_PMIX"); own != "" {
		path, err := solib.Check(own)
		if err == nil {
			err = load(path)
		}
		if err != nil {
			return "", fmt.Errorf("pmix: GOTRAIN_PMIX=%s: %w", own, err)
		}
		return path, nil
	}
	var why error
	for _, path := range candidates(lookup) {
		if path != library {
			if _, err := os.Stat(path); err != nil {
				continue
			}
			checked, err := solib.Check(path)
			if err != nil {
				why = err
				continue
			}
			path = checked
		}
		err := load(path)
		if err == nil {
			return path, nil
		}
		if why == nil || path != library {
			why = err
		}
	}
	if errors.Is(why, solib.ErrUntrusted) || errors.Is(why, errBuild) {
		return "", fmt.Errorf("pmix: %w", why)
	}
	return "", fmt.Errorf("pmix: %w: %v\nhint: %s", ErrMissing, why, missingHint)
}

// candidates lists where the library may be: that of the launcher itself, which has the server's version and which Open MPI 5 names in PMIX_PREFIX; the one
// that is known to the linker; that beside the mpirun of PATH.
func candidates(lookup launch.Lookup) (out []string) {
	for _, name := range []string{"PMIX_PREFIX", "OPAL_PREFIX"} {
		if v, _ := lookup(name); filepath.IsAbs(v) {
			out = append(out, below(v)...)
		}
	}
	out = append(out, library)
	if bin, err := exec.LookPath("mpirun"); err == nil {
		if real, err := filepath.EvalSymlinks(bin); err == nil {
			out = append(out, below(filepath.Dir(filepath.Dir(real)))...)
		}
	}
	return out
}

// below lists where an installation keeps the library.
func below(root string) (out []string) {
	for _, dir := range []string{"lib", "lib64", "lib/openmpi", "lib/pmix"} {
		out = append(out, filepath.Join(root, dir, library))
	}
	return out
}
