package settings

import (
	"fmt"
	"math"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// variable is a variable that HCCL reads.
type variable struct {
	name  string
	check func(string) error // nil: any text
}

// variables lists those of HCCL, with their documented ranges. HCCL reports a bad value late, as EI0001, or takes its default.
var variables = []variable{
	{"HCCL_BUFFSIZE", whole(1, math.MaxUint32)},
	{"HCCL_ALGO", algo},
	{"HCCL_CONNECT_TIMEOUT", whole(120, 7200)},
	{"HCCL_EXEC_TIMEOUT", execTimeout},
	{"HCCL_DETERMINISTIC", words("false", "true", "strict")},
	{"HCCL_OP_EXPANSION_MODE", words("HOST", "HOST_TS", "AI_CPU", "AIV", "AICPU_TS")},
	{"HCCL_IF_IP", address},
	{"HCCL_SOCKET_IFNAME", interfaces},
	{"HCCL_SOCKET_FAMILY", words("AF_INET", "AF_INET6")},
	{"HCCL_IF_BASE_PORT", whole(1024, 65520)},
	{"HCCL_HOST_SOCKET_PORT_RANGE", ports},
	{"HCCL_NPU_SOCKET_PORT_RANGE", ports},
	{"HCCL_WHITELIST_DISABLE", words("0", "1")},
	{"HCCL_WHITELIST_FILE", nil},
	{"HCCL_INTRA_ROCE_ENABLE", words("0", "1")},
	{"HCCL_INTRA_PCIE_ENABLE", words("0", "1")},
	{"HCCL_RDMA_TC", trafficClass},
	{"HCCL_RDMA_SL", whole(0, 7)},
	{"HCCL_RDMA_TIMEOUT", whole(5, 20)},
	{"HCCL_RDMA_RETRY_CNT", whole(1, 7)},
	{"HCCL_OP_RETRY_ENABLE", retry},
	{"HCCL_OP_RETRY_PARAMS", nil},
	{"HCCL_LOGIC_SUPERPOD_ID", nil},
	{"HCCL_INTER_HCCS_DISABLE", nil},
	{"HCCL_DIAGNOSE_ENABLE", nil},
	{"HCCL_ENTRY_LOG_ENABLE", nil},
	{"HCCL_DEBUG_CONFIG", nil},
	{"HCCL_DFS_CONFIG", nil},
}

// own are variables that describe one host: they may differ between ranks.
var own = []string{"HCCL_IF_IP", "HCCL_SOCKET_IFNAME", "HCCL_WHITELIST_FILE", "HCCL_LOGIC_SUPERPOD_ID"}

// foreign are variables that begin with HCCL_ and are read by torch_npu only.
var foreign = []string{"HCCL_EVENT_TIMEOUT", "HCCL_ASYNC_ERROR_HANDLING", "HCCL_BLOCKING_WAIT"}

func find(name string) (variable, bool) {
	i := slices.IndexFunc(variables, func(v variable) bool { return v.name == name })
	if i < 0 {
		return variable{}, false
	}
	return variables[i], true
}

// Environ returns the variables of this process.
func Environ() map[string]string {
	m := map[string]string{}
	for _, v := range os.Environ() {
		if name, value, ok := strings.Cut(v, "="); ok {
			m[name] = value
		}
	}
	return m
}

// digits parses a number that consists of digits only.
func digits(s string) (uint64, error) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("it is not a whole number")
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("it is too large")
	}
	return n, nil
}

func whole(lo, hi uint64) func(string) error {
	return func(s string) error {
		n, err := digits(s)
		if err != nil {
			return fmt.Errorf("%w from %d to %d", err, lo, hi)
		}
		if n < lo || n > hi {
			return fmt.Errorf("it is outside %d to %d", lo, hi)
		}
		return nil
	}
}

func words(list ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(list, s) {
			return fmt.Errorf("it is none of %s", strings.Join(list, ", "))
		}
		return nil
	}
}

// execTimeout is whole seconds, or with two decimals where collectives run on vector cores.
func execTimeout(s string) error {
	n, frac, dot := strings.Cut(s, ".")
	if err := whole(0, math.MaxInt32)(n); err != nil {
		return err
	}
	if dot && (len(frac) > 2 || frac == "" || strings.Trim(frac, "0123456789") != "") {
		return fmt.Errorf("it has more than two decimals")
	}
	return nil
}

func trafficClass(s string) error {
	if err := whole(0, 255)(s); err != nil {
		return err
	}
	if n, _ := digits(s); n%4 != 0 {
		return fmt.Errorf("it is not a multiple of 4 (the class is 4 × DSCP)")
	}
	return nil
}

func address(s string) error {
	if _, err := netip.ParseAddr(s); err != nil {
		return fmt.Errorf("it is not an IP address")
	}
	return nil
}

// interfaces is a list such as "eth,enp" (beginnings of names), "^eth", "=eth0" or "^=eth0,eth1".
func interfaces(s string) error {
	list := strings.TrimPrefix(strings.TrimPrefix(s, "^"), "=")
	for _, name := range strings.Split(list, ",") {
		if name == "" || strings.ContainsAny(name, " /^=") {
			return fmt.Errorf("%q is not the name of a network interface", name)
		}
	}
	return nil
}

// ports is "auto", or ranges such as "60000-60050,61000".
func ports(s string) error {
	if s == "auto" {
		return nil
	}
	for _, r := range strings.Split(s, ",") {
		from, to, ok := strings.Cut(r, "-")
		if !ok {
			to = from
		}
		for _, p := range []string{from, to} {
			if err := whole(1, 65535)(p); err != nil {
				return fmt.Errorf("%q is not a port or a range of ports: %w", r, err)
			}
		}
		a, _ := digits(from)
		if b, _ := digits(to); a > b {
			return fmt.Errorf("range %s ends before it begins", r)
		}
	}
	return nil
}

// retry is "L1:0,L2:1", in the form of newer versions also with "L0:0".
func retry(s string) error {
	seen := map[string]bool{}
	for _, part := range strings.Split(s, ",") {
		level, on, ok := strings.Cut(part, ":")
		if !ok || !slices.Contains([]string{"L0", "L1", "L2"}, level) || on != "0" && on != "1" || seen[level] {
			return fmt.Errorf("%q is not L1:0, L1:1, L2:0 or L2:1", part)
		}
		seen[level] = true
	}
	return nil
}
