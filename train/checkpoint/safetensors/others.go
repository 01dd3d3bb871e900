package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/train/foreign"
)

// ErrPickle means that a file is in Python's pickle format (.pth, .pt, pytorch_model.bin). A pickle is a program, and is not run.
var ErrPickle = errors.New("it is a pickle, which is a program and cannot be read safely")

const pickleHint = "\nhint: convert it to safetensors, in Python: " +
	"safetensors.torch.save_file(torch.load(FILE, map_location=\"cpu\", weights_only=True), \"model.safetensors\")"

// CheckPickle returns the error, with a hint, for a pickle, recognised by its name or its contents: PyTorch's archives are zip files, its older ones
// begin with the pickle itself. It returns nil for anything else.
func CheckPickle(head []byte, path string) error {
	old := len(head) > 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5
	if ext := filepath.Ext(path); ext == ".pth" || ext == ".pt" || bytes.HasPrefix(head, []byte("PK\x03\x04")) || old {
		return fmt.Errorf("%w%s", ErrPickle, pickleHint)
	}
	return nil
}

// picklesIn reports pickles in a folder that has no safetensors.
func picklesIn(dir string) error {
	for _, pattern := range []string{"*.pth", "*.pt", "pytorch_model*.bin"} {
		if found, _ := foreign.Glob(filepath.Join(dir, pattern)); len(found) > 0 {
			return fmt.Errorf("safetensors: %s: %w%s", found[0], ErrPickle, pickleHint)
		}
	}
	return nil
}

// WrapperHint explains names that all begin with the prefix of a PyTorch wrapper: "module." of DistributedDataParallel and DataParallel, "_orig_mod."
// of torch.compile. It returns "" for other names.
func WrapperHint(names []string) string {
	wrapped := func(name string) bool {
		return strings.HasPrefix(name, "module.") || strings.HasPrefix(name, "_orig_mod.")
	}
	if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return !wrapped(n) }) {
		return ""
	}
	prefix := ""
	for rest := names[0]; wrapped(rest); {
		part, after, _ := strings.Cut(rest, ".")
		prefix, rest = prefix+part+".", after
	}
	return fmt.Sprintf("all names begin with %q, the prefix of a PyTorch wrapper (module.: DistributedDataParallel; _orig_mod.: torch.compile); "+
		"save the tensors without it, in Python: "+
		"{name.removeprefix(%q): t for name, t in state.items()}", prefix, prefix)
}
