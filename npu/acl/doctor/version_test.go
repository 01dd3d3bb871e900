package doctor

import "testing"

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		v, ranges string
		in, known bool
	}{
		{"7.7.0.6.236", "[7.0.0,7.7.99]", true, true},
		{"7.8.0.1.100", "[7.0.0,7.7.99]", false, true},
		{"6.9", "[7.0.0,7.7.99]", false, true},
		{"25.2.1", "[24.0,24.0.],[24.1,24.1.],[25.2,25.2.]", true, true},
		{"25.3.0", "[24.0,24.0.],[24.1,24.1.],[25.2,25.2.]", false, true},
		{"7.7.0.1.238", ">=7.6, <=7.7", true, true},
		{"7.8.0", ">=7.6, <=7.7", false, true},
		{"7.5.9", ">=7.6, <=7.7", false, true},
		{"7.6", "<7.6", false, true},
		{"7.6.1", ">7.6", true, true},
		{"1", "anything", false, false},
		{"1", "", false, false},
	} {
		if in, known := within(c.v, c.ranges); in != c.in || known != c.known {
			t.Errorf("%s in %s: %v %v", c.v, c.ranges, in, known)
		}
	}
	ordered := []string{"8.0.alpha003", "8.0.beta1", "8.0.RC1", "8.0.RC2", "8.0.0", "8.1.RC1", "8.1.0", "25.0.rc1.1", "25.0"}
	for i := 1; i < len(ordered); i++ {
		if a, b := parseVersion(ordered[i-1]), parseVersion(ordered[i]); a.compare(b) >= 0 || b.compare(a) <= 0 {
			t.Errorf("%s is not older than %s", ordered[i-1], ordered[i])
		}
	}
}
