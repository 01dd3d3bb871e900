package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/internal/notices"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train"
)

// versionInfo describes the binary.
type versionInfo struct {
	Version  string            `json:"version"`
	Go       string            `json:"go"`
	Platform string            `json:"platform"`
	Devices  map[string]string `json:"devices"`
}

func (a *app) versionCmd() *cobra.Command {
	var asJSON, licences bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print version, platform and usable devices",
		Example: "  gotrain version\n  gotrain version --notices | less    # the licences of everything linked in",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if licences {
				_, err := fmt.Fprint(a.out, notices.Text())
				return err
			}
			v := versionInfo{train.Version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, map[string]string{}}
			for _, f := range npu.Families() {
				v.Devices[f] = deviceDetail(f)
			}
			if asJSON {
				return a.printJSON(v)
			}
			fmt.Fprintf(a.out, "gotrain %s, %s, %s\n", v.Version, v.Go, v.Platform)
			for _, f := range npu.Families() {
				fmt.Fprintf(a.out, "  %-4s %s\n", f, v.Devices[f])
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	c.Flags().BoolVar(&licences, "notices", false, "print the licences of everything in this program")
	c.MarkFlagsMutuallyExclusive("json", "notices")
	return c
}

// deviceDetail opens a device and describes it, or the reason why it cannot be opened.
func deviceDetail(family string) string {
	d, err := npu.Open(family, npu.Options{})
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return "not usable: " + first
	}
	defer d.Close()
	return d.Info().Detail
}
