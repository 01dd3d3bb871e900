package cann

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// Version is what the files of a toolkit say about its version.
type Version struct {
	Name     string            // "8.1.RC1"; "" if no file tells
	Major    int               // 8
	Minor    int               // 1
	Packages map[string]string // of each package that has a version.info: "runtime" → "8.1.RC1 (7.7.0.1.238)"
}

// ReadVersion reads the version files below the root of a toolkit, of 8.x or of 9.x.
func ReadVersion(root string) Version { return ReadVersionIn(os.DirFS(root)) }

// ReadVersionIn is ReadVersion for a toolkit that is the root of a file system.
func ReadVersionIn(root fs.FS) Version {
	v := Version{Packages: map[string]string{}}
	for _, pattern := range []string{"*/version.info", "share/info/*/version.info"} {
		files, _ := fs.Glob(root, pattern)
		for _, f := range files {
			kv := keys(root, f)
			pkg, name := path.Base(path.Dir(f)), kv["version_dir"]
			switch {
			case name != "" && kv["Version"] != "":
				v.Packages[pkg] = fmt.Sprintf("%s (%s)", name, kv["Version"])
			case kv["Version"] != "":
				v.Packages[pkg] = kv["Version"]
			}
			if v.Name == "" && (pkg == "runtime" || pkg == "opp") {
				v.Name = name
			}
		}
	}
	if name := installInfo(root); name != "" {
		v.Name = name
	}
	if v.Name == "" {
		v.Name = runningVersion(root)
	}
	fmt.Sscanf(v.Name, "%d.%d", &v.Major, &v.Minor)
	return v
}

// String lists the versions, such as "8.1.RC1; hccl 8.1.RC1 (7.7.0.1.238), runtime …".
func (v Version) String() string {
	var l []string
	for _, p := range slices.Sorted(maps.Keys(v.Packages)) {
		l = append(l, p+" "+v.Packages[p])
	}
	name := v.Name
	if name == "" {
		name = "unknown version"
	}
	if len(l) == 0 {
		return name
	}
	return name + "; " + strings.Join(l, ", ")
}

// installInfo is the version in ascend_toolkit_install.info, which lies in the folder of an architecture.
func installInfo(root fs.FS) string {
	for _, pattern := range []string{"*-linux/ascend_*_install.info", "ascend_*_install.info"} {
		files, _ := fs.Glob(root, pattern)
		for _, f := range files {
			if name := keys(root, f)["version"]; name != "" {
				return name
			}
		}
	}
	return ""
}

// runningVersion is 8.1.RC1 of the line runtime_running_version=[7.7.0.1.238:8.1.RC1].
func runningVersion(root fs.FS) string {
	_, name, _ := strings.Cut(strings.Trim(keys(root, "version.cfg")["runtime_running_version"], "[]"), ":")
	return name
}

// keys reads the lines key=value of a file; nil if it cannot be read. Such a file has a few hundred bytes.
func keys(root fs.FS, file string) map[string]string {
	text, err := fs.ReadFile(root, file)
	if err != nil || len(text) > 1<<20 {
		return nil
	}
	return ParseKeys(string(text))
}

// ParseKeys reads lines key=value; quotes around a value and lines that begin with # are left out.
func ParseKeys(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(k, "#") {
			m[strings.TrimSpace(k)] = strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return m
}
