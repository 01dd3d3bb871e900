package train

import (
	"regexp"
	"runtime/debug"
)

// released matches the version of a tagged commit without changes. Go makes others up: v0.0.0-20261130190558-8fc2b3f1d0aa, v1.2.3+dirty.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+(-(alpha|beta|rc)[.0-9]*)?$`)

// Version is the version of gotrain as recorded by the build: the tag of a release, otherwise the commit.
func Version() string {
	if i, ok := debug.ReadBuildInfo(); ok {
		return version(i)
	}
	return "devel"
}

func version(i *debug.BuildInfo) string {
	if released.MatchString(i.Main.Version) {
		return i.Main.Version
	}
	for _, s := range i.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	if i.Main.Version != "" {
		return i.Main.Version
	}
	return "devel"
}
