package fakecann

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// exported lists the functions that a library defines.
func exported(t *testing.T, file string) map[string]bool {
	t.Helper()
	out, err := exec.Command("nm", "-D", "--defined-only", file).Output()
	if err != nil {
		t.Skip("nm: ", err)
	}
	m := map[string]bool{}
	for _, line := range strings.Split(string(out), "\n") {
		if f := strings.Fields(line); len(f) == 3 {
			m[f[2]] = true
		}
	}
	return m
}

func TestLibrariesOfVersions(t *testing.T) {
	for version, want := range map[string]map[string][]string{
		"8.1": {"ascendcl": {"aclInit"}, "nnopbase": {"aclCreateTensor"}, "opapi": {"aclnnAdd", "aclnnFlashAttentionScoreGetWorkspaceSize"}, "hccl": {"HcclCommInitAll", "HcclAllReduce"},
			"dcmi": {"dcmi_init"}},
		"9.0": {"ascendcl": {"aclInit"}, "acl_rt": {"aclInit"}, "nnopbase": {"aclCreateTensor"}, "opapi_math": {"aclnnAdd"}, "opapi_nn": {"aclnnConvolution"},
			"opapi_transformer": {"aclnnFlashAttentionScore"}, "hcomm": {"HcclGroupStart", "HcclCommInitAll"}, "hccl": {"HcclAllReduce"}},
	} {
		dir := Install(t, Options{Version: version, Without: []string{"Sqrt", "aclrtStreamAbort"}})
		all := map[string]bool{}
		for lib, names := range want {
			m := exported(t, filepath.Join(dir, "lib64", "lib"+lib+".so"))
			for _, n := range names {
				if !m[n] {
					t.Errorf("%s: lib%s.so does not export %s", version, lib, n)
				}
			}
			for n := range m {
				all[n] = true
			}
		}
		for _, n := range []string{"aclnnSqrt", "aclnnSqrtGetWorkspaceSize", "aclrtStreamAbort"} {
			if all[n] {
				t.Errorf("%s: %s is there", version, n)
			}
		}
		if all["HcclGroupStart"] != (version == "9.0") || all["aclnnDropoutGenMaskV2Tensor"] != (version == "9.0") {
			t.Errorf("%s: functions of the newer version: HcclGroupStart %v", version, all["HcclGroupStart"])
		}
		if _, err := os.Stat(filepath.Join(dir, "opp_kernel", "version.info")); err != nil {
			t.Error(err)
		}
	}
	if err := BuildWith(t.TempDir(), Options{Version: "7.0"}); err == nil {
		t.Error("version 7.0 was accepted")
	}
}

func TestNoCompiler(t *testing.T) {
	t.Setenv("FAKE_CANN_CC", "no-such-compiler")
	if err := Build(t.TempDir()); err != ErrNoCompiler {
		t.Fatal(err)
	}
}
