package train

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	revision := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "8fc2b3f1d0aa9c0d"}}
	for _, c := range []struct {
		main     string
		settings []debug.BuildSetting
		want     string
	}{
		{"v1.2.3", revision, "v1.2.3"},
		{"v1.2.3-rc.1", revision, "v1.2.3-rc.1"},
		{"v1.2.3+dirty", revision, "8fc2b3f1d0aa"},
		{"v0.0.0-20261130190558-8fc2b3f1d0aa", revision, "8fc2b3f1d0aa"},
		{"v0.0.0-20261130190558-8fc2b3f1d0aa", nil, "v0.0.0-20261130190558-8fc2b3f1d0aa"}, // go install …@main
		{"(devel)", nil, "(devel)"},
		{"", nil, "devel"},
	} {
		if got := version(&debug.BuildInfo{Main: debug.Module{Version: c.main}, Settings: c.settings}); got != c.want {
			t.Errorf("%q: %s, want %s", c.main, got, c.want)
		}
	}
}
