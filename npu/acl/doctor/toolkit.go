package doctor

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/npu/acl/cann"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

// runtimes are the names of the runtime's library.
var runtimes = []string{"libascendcl.so", "libacl_rt.so"}

// onPath lists the folders of LD_LIBRARY_PATH that hold the runtime, in order.
func (x *exam) onPath() []string {
	var l []string
	for _, dir := range strings.Split(x.env["LD_LIBRARY_PATH"], ":") {
		if dir != "" && x.hasRuntime(dir) && !slices.Contains(l, path.Clean(dir)) {
			l = append(l, path.Clean(dir))
		}
	}
	return l
}

func (x *exam) hasRuntime(dir string) bool {
	return slices.ContainsFunc(runtimes, func(lib string) bool { return x.exists(dir + "/" + lib) })
}

// rootOf is the toolkit that a folder of libraries belongs to.
func rootOf(dir string) string {
	root := path.Dir(path.Clean(dir))
	if strings.HasSuffix(root, "-linux") {
		return path.Dir(root)
	}
	return root
}

// findToolkit chooses as package cann does: its own variable, the dynamic linker's path, set_env.sh's variables, the usual folders.
func (x *exam) findToolkit() {
	try := func(root string) bool {
		if root == "" {
			return false
		}
		for _, d := range append([]string{root + "/lib64"}, prefixed("/", x.glob(root+"/*-linux/lib64"))...) {
			if x.hasRuntime(d) {
				x.root, x.libs = path.Clean(root), path.Clean(d)
				return true
			}
		}
		return false
	}
	if home := x.env[cann.EnvHome]; home != "" {
		try(home)
		return
	}
	for _, dir := range x.onPath() {
		if path.Base(dir) != "devlib" {
			x.root, x.libs = rootOf(dir), dir
			return
		}
	}
	for _, root := range append([]string{x.env["ASCEND_HOME_PATH"], x.env["ASCEND_TOOLKIT_HOME"]}, cann.DefaultRoots()...) {
		if try(root) {
			return
		}
	}
}

func prefixed(p string, l []string) []string {
	for i := range l {
		l[i] = p + l[i]
	}
	return l
}

// toolkit checks CANN's files: which one is used, whether its parts are of one version and fit driver and chip.
func (x *exam) toolkit() {
	x.paths()
	if x.root == "" {
		x.add(Error, strings.Join(cann.DefaultRoots(), ", "), "install CANN 8.1 or later (toolkit and kernels package) and source its set_env.sh",
			"CANN is not installed where gotrain looks")
		return
	}
	v := cann.ReadVersionIn(x.sub(x.root))
	x.r.CANN, x.r.Toolkit = v.Name, x.root
	switch {
	case v.Name == "":
		x.add(Warning, x.root, "check that the folder is a whole toolkit", "no file tells the version of CANN")
	case v.Major < 8 || v.Major == 8 && v.Minor < 1:
		x.add(Error, x.root, "install CANN 8.1 or later", "CANN %s is too old", v.Name)
	case v.Major > 9:
		x.add(Note, x.root, "gotrain doctor --abi compares gotrain's tables with its headers and libraries",
			"CANN %s is newer than what gotrain was checked against (8.1 to 9.x)", v.Name)
	default:
		x.ok(x.root, "CANN %s", v.Name)
	}
	if v.Name != "" && v.Major < 9 {
		x.note(x.root,
			"before CANN 9.0 a product of 16-bit matrices is rounded to 16 bits on its way to f32; train.device_options = \"exact_dw=true\" avoids it")
	}
	x.packages(v)
	x.required()
	x.kernels()
}

// packages compares the versions of a toolkit's parts.
func (x *exam) packages(v cann.Version) {
	by := map[string][]string{}
	for _, p := range slices.Sorted(maps.Keys(v.Packages)) {
		if dir, _, ok := strings.Cut(v.Packages[p], " ("); ok { // those that only have a number are older forms
			by[dir] = append(by[dir], p)
		}
	}
	if v.Packages["hccl"] == "" && len(v.Packages) > 0 {
		x.add(Warning, x.root+"/hccl/version.info", "install the whole toolkit: several devices need HCCL", "the toolkit has no package hccl")
	}
	if len(by) > 1 {
		var l []string
		for _, dir := range slices.Sorted(maps.Keys(by)) {
			l = append(l, dir+": "+strings.Join(by[dir], ", "))
		}
		x.add(Error, x.root, "install all of one version: HCCL, runtime and operators of different ones do not work together",
			"packages of several versions: %s", strings.Join(l, "; "))
		return
	}
	for dir, l := range by {
		x.ok(x.root, "%d packages of %s: %s", len(l), dir, strings.Join(l, ", "))
	}
}

var requires = regexp.MustCompile(`^required_(package_|driver_)?(\w+?)_version$`)

// required checks the ranges that packages want of each other.
func (x *exam) required() {
	version := map[string]string{}
	driver := x.versionInfo(x.install()["driver_install_path_param"], "driver").kv
	version["driver_ascendhal"] = driver["ascendhal_version"]
	files := append(x.glob(x.root+"/*/version.info"), x.glob(x.root+"/share/info/*/version.info")...)
	for _, f := range files {
		version["package_"+path.Base(path.Dir(f))] = cann.ParseKeys(x.text(f))["Version"]
	}
	bad := 0
	for _, f := range files {
		kv := cann.ParseKeys(x.text(f))
		for _, k := range slices.Sorted(maps.Keys(kv)) {
			g := requires.FindStringSubmatch(k)
			if g == nil {
				continue
			}
			have, want := version[g[1]+g[2]], kv[k]
			if have == "" {
				continue
			}
			in, known := within(have, want)
			if !known && g[1] == "driver_" { // a number alone is the least version
				in, known = within(have, ">="+want)
			}
			if known && !in {
				bad++
				what := strings.TrimSuffix(g[1], "_") + " " + g[2]
				x.add(Error, "/"+f, "install what belongs together: toolkit, kernels and driver of matching releases", "%s wants %s %s, but %s is installed",
					path.Base(path.Dir(f)), what, want, have)
			}
		}
	}
	if bad == 0 && len(files) > 0 {
		x.ok(x.root, "the versions that %d packages want of each other and of the driver are there", len(files))
	}
}

// kernels checks the package with compiled operators, which is installed apart from the toolkit in 8.x.
func (x *exam) kernels() {
	folder := map[lower.Family]string{lower.A2: "ascend910b", lower.A3: "ascend910_93", lower.A950: "ascend950"}[x.family]
	base := x.root + "/opp/built-in/op_impl/ai_core/tbe/kernel"
	have := x.glob(base + "/*")
	for i := range have {
		have[i] = path.Base(have[i])
	}
	const remedy = "install the kernels package of the same version (Ascend-cann-kernels-*.run; 9.x: Ascend-cann-*-ops): without, operators end with 561003"
	switch {
	case len(have) == 0:
		x.add(Error, base, remedy, "there are no compiled operators")
	case folder == "":
		x.ok(base, "compiled operators for %s", strings.Join(have, ", "))
	case !slices.Contains(have, folder):
		x.add(Error, base, remedy, "there are no compiled operators for %s (%s); there are some for %s", folder, x.family, strings.Join(have, ", "))
	default:
		x.ok(base, "compiled operators for %s", folder)
	}
}

// paths checks what set_env.sh leaves in the environment.
func (x *exam) paths() {
	for _, dir := range strings.Split(x.env["LD_LIBRARY_PATH"], ":") {
		if base := path.Base(path.Clean(dir)); dir != "" && base == "devlib" {
			x.add(Error, "LD_LIBRARY_PATH", "take it out: its libraries are stubs for linking, whose calls return 100039", "%s is on the path", dir)
		}
	}
	seen := map[string]bool{}
	var l []string
	for _, dir := range x.onPath() {
		if r := rootOf(dir); path.Base(dir) != "devlib" && !seen[x.same(r)] {
			seen[x.same(r)] = true
			l = append(l, r)
		}
	}
	if len(l) > 1 {
		x.add(Warning, "LD_LIBRARY_PATH", "source the set_env.sh of one toolkit only, in a fresh shell",
			"several toolkits are on the path; the first is used: %s", strings.Join(l, ", "))
	}
	home := x.env["ASCEND_HOME_PATH"]
	switch {
	case x.root == "" || x.env[cann.EnvHome] != "":
	case home == "" && len(l) == 0:
		x.add(Error, "environment", fmt.Sprintf("source its set_env.sh in the shell that starts gotrain: . %s", x.setEnv()),
			"CANN is in %s, but the environment does not point to it", x.root)
	case home != "" && len(l) > 0 && x.same(home) != x.same(l[0]):
		x.add(Warning, "environment", "source the set_env.sh of one toolkit only, in a fresh shell",
			"ASCEND_HOME_PATH is %s, but LD_LIBRARY_PATH begins with %s", home, l[0])
	}
	if opp := x.env["ASCEND_OPP_PATH"]; opp != "" && home != "" && x.same(path.Dir(path.Clean(opp))) != x.same(home) {
		x.add(Warning, "environment", "source the set_env.sh of one toolkit only, in a fresh shell",
			"ASCEND_OPP_PATH is %s, which is not below ASCEND_HOME_PATH (%s)", opp, home)
	}
}

// setEnv is the script of the toolkit, which 8.x has one folder up.
func (x *exam) setEnv() string {
	if f := path.Dir(x.root) + "/set_env.sh"; x.exists(f) {
		return f
	}
	return x.root + "/set_env.sh"
}

// same is a name by which two paths to one toolkit are equal: "latest" is a link to a version.
func (x *exam) same(root string) string {
	if v := x.text(root + "/version.cfg"); v != "" {
		return path.Dir(root) + "\x00" + v
	}
	return root
}
