//go:build pretrained

package resnet_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gotrain/gotrain/train/checkpoint/tfjs"
)

// archiveSum is the checksum of the package that the reference was made from.
const archiveSum = "863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484"

// weightsVar names an archive or folder with the weights, where they need not be fetched.
const weightsVar = "GOTRAIN_PRETRAINED"

// weights are the pretrained ones. They are kept in the user's cache; a test on a machine that cannot get them is skipped.
func weights(t *testing.T) map[string]tfjs.Tensor {
	t.Helper()
	at := os.Getenv(weightsVar)
	if at == "" {
		at = fetch(t)
	}
	list, err := tfjs.Load(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]tfjs.Tensor{}
	for _, x := range list {
		m[x.Name] = x
	}
	return m
}

// fetch gets the package with npm.
func fetch(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	dir := filepath.Join(cache, "gotrain")
	at := filepath.Join(dir, tfjs.Archive)
	if sum(at) == nil {
		return at
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skipf("no npm to get %s with; install it, or name the archive in %s", tfjs.Package, weightsVar)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	tmp, err := os.MkdirTemp(dir, "npm")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "pack", "--pack-destination", tmp, tfjs.Package)
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("npm could not get %s (%v), so there is nothing to compare: %s", tfjs.Package, err, out)
	}
	if err := sum(filepath.Join(tmp, tfjs.Archive)); err != nil {
		t.Fatalf("what npm got is not what the reference was made from: %v", err)
	}
	if err := os.Rename(filepath.Join(tmp, tfjs.Archive), at); err != nil {
		t.Fatal(err)
	}
	return at
}

// sum checks the archive's checksum.
func sum(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != archiveSum {
		return fmt.Errorf("%s has sha256 %s, want %s", path, got, archiveSum)
	}
	return nil
}
