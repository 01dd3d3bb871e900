package recipes

import (
	"crypto/sha256"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// String returns the complete recipe as TOML, every key with its value, but no sections of networks that it does not use. Decoding it gives an equal recipe.
func (r *Recipe) String() string {
	var b strings.Builder
	for i, s := range schema() {
		if !r.writes(s) {
			continue
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[%s]\n", s.name)
		for _, f := range s.fields {
			fmt.Fprintf(&b, "%s = %s\n", f.name, literal(f.in(r)))
		}
	}
	return b.String()
}

// literal formats a value as TOML.
func literal(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return quote(v.String())
	case reflect.Float64:
		if v.Type() == mibType && v.Float() == float64(Auto) {
			return quote(autoWord)
		}
		return float(v.Float())
	case reflect.Struct:
		return v.Interface().(Group).inline()
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = literal(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(v.Interface())
}

// float formats the shortest number that parses back to the same value, with a point or an exponent so that it is a TOML float.
func float(x float64) string {
	if math.IsNaN(x) {
		return "nan"
	}
	if math.IsInf(x, 0) {
		return strings.TrimPrefix(strconv.FormatFloat(x, 'g', -1, 64), "+") // "Inf" never passes check
	}
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// quote writes a TOML basic string. Its escapes differ from Go's.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteRune('\\')
			b.WriteRune(c)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 0x20 || c == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// placeKeys may differ between the machines of one job and do not change the results.
var placeKeys = []string{
	"run.name",
	"run.output_dir",
	"model.init_from",
	"model.init_help",
	"data.root",
	"data.workers_per_rank",
	"data.decoder",
	"train.ranks",
	"train.threads_per_rank",
	"train.pin_cpus",
	"train.grace_seconds",
	"checkpoint.dir",
	"checkpoint.resume",
}

// Fingerprint is a hash of everything that ranks must agree on.
func (r *Recipe) Fingerprint() string {
	h := sha256.New()
	for _, s := range r.Common() {
		fmt.Fprintf(h, "%s=%s\n", s[0], s[1])
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}

// Common lists the keys that ranks must agree on, with their values: the recipe without paths and without its logging settings.
func (r *Recipe) Common() (list [][2]string) {
	for _, s := range schema() {
		if s.name == "log" || !r.writes(s) {
			continue
		}
		for _, f := range s.fields {
			if !slices.Contains(placeKeys, f.key()) {
				list = append(list, [2]string{f.key(), literal(f.in(r))})
			}
		}
	}
	return list
}
