package cann

import (
	"fmt"
	"strconv"
	"strings"
)

// EnvVisible is CANN's own variable. Devices are renumbered from 0 in the order of its list.
const EnvVisible = "ASCEND_RT_VISIBLE_DEVICES"

// Visible parses the list of visible devices. CANN reads the list up to the first wrong entry and then says that there is no device; gotrain says what is
// wrong.
func Visible(list string) ([]int, error) {
	var l []int
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(s)
		switch {
		case err != nil || n < 0 || s[0] == '+':
			return nil, fmt.Errorf("%s=%s: %q is not the number of a device\nhint: list numbers with commas between them and without blanks, such as 0,1",
				EnvVisible, list, s)
		case len(l) > 0 && n <= l[len(l)-1]:
			return nil, fmt.Errorf("%s=%s: the numbers must ascend, else CANN sees no device\nhint: sort the list", EnvVisible, list)
		}
		l = append(l, n)
	}
	return l, nil
}
