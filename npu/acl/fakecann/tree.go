package fakecann

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// tree writes the files of an installed toolkit, beside its libraries: those that say which version of what is there.
func tree(dir, version string) error {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	name, number := "8.1.RC1", "7.7.0.1.238"
	if version == "9.0" {
		name, number = "9.0.0", "9.0.0.1.117"
	}
	files := map[string]string{
		filepath.Join(arch+"-linux", "ascend_toolkit_install.info"): fmt.Sprintf("package_name=Ascend-cann-toolkit\nversion=%s\ninnerversion=V100R001C21SPC002B238\n"+
			"compatible_version=[V100R001C15],[V100R001C18],[V100R001C19],[V100R001C20]\narch=%s\nos=linux\npath=%s/%s-linux\n", name, arch, dir, arch),
		"set_env.sh": fmt.Sprintf("export ASCEND_TOOLKIT_HOME=%[1]s\nexport ASCEND_HOME_PATH=%[1]s\nexport ASCEND_OPP_PATH=%[1]s/opp\n"+
			"export LD_LIBRARY_PATH=%[1]s/lib64:$LD_LIBRARY_PATH\n", dir),
		"opp/version.info":        "Version=" + number + "\nversion_dir=" + name + "\n",
		"opp_kernel/version.info": "Version=" + number + "\nversion_dir=" + name + "\nops_version=" + number + "\n",
	}
	var cfg strings.Builder
	cfg.WriteString("# version: 1.0\n")
	for _, pkg := range []string{"runtime", "compiler", "hccl", "opp", "toolkit", "opp_kernel"} {
		fmt.Fprintf(&cfg, "%[1]s_running_version=[%[2]s:%[3]s]\n%[1]s_upgrade_version=[%[2]s:%[3]s]\n%[1]s_installed_version=[%[2]s:%[3]s]\n", pkg, number, name)
		info := fmt.Sprintf("Version=%s\nversion_dir=%s\ntimestamp=20250414_110522217\nrequired_driver_ascendhal_version=4.0.0\n", number, name)
		switch {
		case version == "9.0":
			files["share/info/"+pkg+"/version.info"] = info
		case pkg == "runtime" || pkg == "compiler" || pkg == "hccl" || pkg == "toolkit":
			files[pkg+"/version.info"] = info + "required_package_opp_version=\">=7.6, <=7.7\"\n"
		}
	}
	files["version.cfg"] = cfg.String()
	for _, soc := range []string{"ascend910b", "ascend910_93"} {
		files["opp/built-in/op_impl/ai_core/tbe/kernel/"+soc+"/ops.info"] = "soc=" + soc + "\n"
	}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	link := filepath.Join(dir, arch+"-linux", "lib64")
	if err := os.Symlink("../lib64", link); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}
