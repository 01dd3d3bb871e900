package doctor

import "testing"

func TestMask(t *testing.T) {
	for in, want := range map[string]string{
		"device 2 has the address 198.51.100.99, not 198.51.100.12; 198.51.100.99.": "device 2 has the address ADDRESS-1, not ADDRESS-2; ADDRESS-1.",
		"driver 24.1.0.3, firmware 7.7.0.6.236, CANN 8.1.RC1 (7.7.0.1.238)":         "driver 24.1.0.3, firmware 7.7.0.6.236, CANN 8.1.RC1 (7.7.0.1.238)",
		"HCCL_IF_IP is fe80::1ff:fe23:4567:890a":                                    "HCCL_IF_IP is ADDRESS-1",
		"mac 00:1b:44:11:3a:b7, bus 0000:80:00.0, 127.0.0.1, 12:30:05":              "mac ADDRESS-1, bus 0000:80:00.0, 127.0.0.1, 12:30:05",
		"node-17 and /home/alice/runs, not anode-17b":                               "HOST and /HOME/runs, not anode-17b",
	} {
		if got := Mask(in, map[string]string{"node-17": "HOST", "/home/alice": "HOME", "": "X"}); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}
