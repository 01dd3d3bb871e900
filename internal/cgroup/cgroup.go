package cgroup

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Dir is the directory of a control group.
type Dir struct {
	Path string // relative to the root of the file system
	V1   bool   // it has the files of version 1
}

// Dirs lists the directories of this process's groups that have a controller ("cpu", "memory"). Each group is followed by those around it, because a
// limit holds for everything below it. root is the file system: os.DirFS("/"), except in tests. A directory that is listed need not exist.
func Dirs(root fs.FS, controller string) (dirs []Dir) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	mountinfo, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(groups)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3) // 0::/a/b or 4:cpu,cpuacct:/a/b
		if len(part) != 3 {
			continue
		}
		v1 := part[1] != ""
		if v1 && !listed(part[1], controller) || !v1 && part[0] != "0" {
			continue
		}
		for _, m := range mounts(string(mountinfo), controller, v1) {
			for dir := m.dir(part[2]); ; dir = path.Dir(dir) {
				dirs = append(dirs, Dir{dir, v1})
				if dir == m.at || dir == "." || dir == "/" {
					break
				}
			}
		}
	}
	return dirs
}

// mount is where a hierarchy of control groups is mounted, from the group root downwards.
type mount struct{ root, at string }

// mounts lists the mounts of version 2, or those of version 1 that have the controller.
func mounts(mountinfo, controller string, v1 bool) (out []mount) {
	kind := "cgroup2"
	if v1 {
		kind = "cgroup"
	}
	for line := range strings.Lines(mountinfo) {
		left, right, found := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !found || len(l) < 5 || len(r) < 3 || r[0] != kind || v1 && !listed(r[2], controller) {
			continue
		}
		out = append(out, mount{unescape(l[3]), strings.TrimPrefix(path.Clean(unescape(l[4])), "/")})
	}
	return out
}

// dir returns the directory of a group. A group outside the root of the mount is not visible to this process, as in a container: then dir returns the top
// of the mount.
func (m mount) dir(group string) string {
	rest, below := strings.CutPrefix(path.Clean("/"+group), strings.TrimSuffix(path.Clean(m.root), "/"))
	if !below || rest != "" && rest[0] != '/' || strings.Contains(group, "..") {
		rest = ""
	}
	return path.Join(m.at, rest)
}

// unescape decodes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// listed reports whether a comma-separated list contains a word.
func listed(list, word string) bool { return slices.Contains(strings.Split(list, ","), word) }
