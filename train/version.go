package train

import (
	"runtime/debug"
)

// Version is the version of gotrain as recorded by the build.
func Version() string {
	if i, ok := debug.ReadBuildInfo(); ok {
		for _, s := range i.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(12, len(s.Value))]
			}
		}
		if i.Main.Version != "" {
			return i.Main.Version
		}
	}
	return "devel"
}
