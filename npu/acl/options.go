package acl

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

// options are the device-specific keys, parsed.
type options struct {
	index         int   // which of the visible devices
	deterministic bool  // operators sum in a fixed order
	hf32          bool  // products of f32 may be computed with about 13 bits
	exact         bool  // f32 results of products of 16-bit operands are never rounded to 16 bits
	fresh         bool  // CANN prepares operators anew for each launch
	debugSync     bool  // wait after each operator, to name the one that fails
	experimental  bool  // SoCs that are not supported yet
	memory        int64 // bytes to take at once and never to exceed; 0: as needed
}

var optionKeys = []string{"device", "deterministic", "allow_hf32", "exact_dw", "debug_sync", "reuse", "memory_mib", "experimental"}

func parseOptions(o npu.Options) (options, error) {
	r := options{index: o.Index, deterministic: true}
	reuse := true
	flags := map[string]*bool{"deterministic": &r.deterministic, "allow_hf32": &r.hf32, "exact_dw": &r.exact, "debug_sync": &r.debugSync, "reuse": &reuse,
		"experimental": &r.experimental}
	for _, k := range slices.Sorted(maps.Keys(o.Extra)) {
		v := o.Extra[k]
		var err error
		unknown := false
		switch flag := flags[k]; {
		case flag != nil && (v == "true" || v == "false"):
			*flag = v == "true"
		case flag != nil:
			err = fmt.Errorf("option %s is %q\nhint: use true or false", k, v)
		case k == "device":
			if r.index, err = strconv.Atoi(v); err != nil || r.index < 0 {
				err = fmt.Errorf("option device is %q\nhint: use the number of a device, counted from 0", v)
			}
		case k == "memory_mib":
			var n int64
			if n, err = strconv.ParseInt(v, 10, 64); err != nil || n < 0 || n > 1<<30 {
				err = fmt.Errorf("option memory_mib is %q\nhint: use a number of MiB; 0 takes memory as needed", v)
			}
			r.memory = n << 20
		case k == "calibrate" || k == "f16": // asked for by trainers: the peak cannot be measured here, and f16 needs no request
		default:
			unknown = true
			err = fmt.Errorf("unknown option %q\nhint: use one of %s", k, strings.Join(optionKeys, ", "))
		}
		if err != nil {
			return options{}, &npu.OptionError{Err: err, Unknown: unknown}
		}
	}
	r.fresh = !reuse
	if r.index < 0 {
		return options{}, fmt.Errorf("device %d does not exist", r.index)
	}
	return r, nil
}

const hintSupported = "hint: gotrain supports Atlas A2 (Ascend910B1…B4) and A3 (Ascend910_93xx); use train.device = \"cpu\" here"

// gate decides whether gotrain computes on an SoC.
func gate(soc string, experimental bool) (lower.Family, error) {
	f := lower.FamilyOf(soc)
	switch {
	case f == lower.A2 || f == lower.A3:
		return f, nil
	case f == lower.A950 && experimental:
		return f, nil
	case f == lower.A950:
		return f, fmt.Errorf("the SoC %s (family 950) is not supported yet: nothing of gotrain was tried on it\n"+
			"hint: set the device option experimental=true to try it; compare its results with the cpu device", soc)
	case f == lower.A910:
		return f, fmt.Errorf("the SoC %s is of the first Ascend 910 generation, which lacks bf16 and operators that gotrain needs "+
			"(fused attention, RotaryPositionEmbedding, AdamW)\n%s", soc, hintSupported)
	}
	return f, fmt.Errorf("the SoC %q is not known\n%s", soc, hintSupported)
}
