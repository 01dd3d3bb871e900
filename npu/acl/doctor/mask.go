package doctor

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// addressLike finds what may be an address: IPv4, IPv6 or that of a network card.
var addressLike = regexp.MustCompile(`[0-9A-Fa-f:.]*[0-9A-Fa-f]*[.:][0-9A-Fa-f:.]*[0-9A-Fa-f]`)

var (
	mac      = regexp.MustCompile(`^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$`)
	version4 = regexp.MustCompile(`(?i)(version|driver|firmware|CANN|wants|ACL|\[|,)[ =:]*"?$`) // before a version of four numbers
)

// Mask replaces addresses, and the given names, by words; equal ones by equal words. Empty names are ignored.
func Mask(text string, names map[string]string) string {
	for _, n := range slices.Sorted(maps.Keys(names)) {
		if len(n) > 2 && n != "localhost" {
			text = regexp.MustCompile(`\b`+regexp.QuoteMeta(strings.TrimPrefix(n, "/"))+`\b`).ReplaceAllString(text, names[n])
		}
	}
	words := map[string]string{}
	var b strings.Builder
	at := 0
	for _, m := range addressLike.FindAllStringIndex(text, -1) {
		s := text[m[0]:m[1]]
		if !address(s) || m[0] > 0 && version4.MatchString(text[max(0, m[0]-20):m[0]]) {
			continue
		}
		if words[s] == "" {
			words[s] = fmt.Sprintf("ADDRESS-%d", len(words)+1)
		}
		b.WriteString(text[at:m[0]] + words[s])
		at = m[1]
	}
	return b.String() + text[at:]
}

func address(s string) bool {
	if mac.MatchString(s) {
		return true
	}
	a, err := netip.ParseAddr(s)
	return err == nil && a.IsValid() && !a.IsUnspecified() && !a.IsLoopback()
}
