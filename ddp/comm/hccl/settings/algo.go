package settings

import (
	"fmt"
	"slices"
	"strings"
)

// algorithms lists the words of HCCL_ALGO by level. Level 0 is within a machine and cannot be chosen; level 2 exists where machines form super pods.
var algorithms = [3][]string{
	{"NA"},
	{"ring", "H-D_R", "NHR", "NHR_V1", "NB", "AHC", "pipeline", "pairwise"},
	{"ring", "H-D_R", "NHR", "NB", "pipeline"},
}

// collectives that HCCL_ALGO can name.
var collectives = []string{"allreduce", "allgather", "reducescatter", "broadcast", "reduce", "scatter", "alltoall", "sendrecv", "others"}

// algo checks a value of HCCL_ALGO: "level0:NA;level1:ring", or one such list for each collective, as "allreduce=level0:NA;level1:ring/allgather=…".
func algo(value string) error {
	parts := strings.Split(value, "/")
	seen := map[string]bool{}
	for _, p := range parts {
		name, levels, named := strings.Cut(p, "=")
		if !named {
			if len(parts) > 1 {
				return fmt.Errorf("%q has no collective in front of its levels", p)
			}
			levels = p
		} else if !slices.Contains(collectives, name) {
			return fmt.Errorf("there is no collective %q (%s)", name, strings.Join(collectives, ", "))
		} else if seen[name] {
			return fmt.Errorf("%s appears twice", name)
		}
		seen[name] = true
		if err := levelsOf(levels); err != nil {
			return err
		}
	}
	return nil
}

func levelsOf(list string) error {
	last := -1
	for _, l := range strings.Split(list, ";") {
		level, word, ok := strings.Cut(l, ":")
		n := slices.Index([]string{"level0", "level1", "level2"}, level)
		if !ok || n < 0 {
			return fmt.Errorf("%q is not level0:…, level1:… or level2:…", l)
		}
		if n <= last {
			return fmt.Errorf("%s appears twice, or after a higher level", level)
		}
		last = n
		if !slices.Contains(algorithms[n], word) {
			return fmt.Errorf("%s has no algorithm %q (%s)", level, word, strings.Join(algorithms[n], ", "))
		}
	}
	return nil
}
