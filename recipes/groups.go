package recipes

import (
	"fmt"
	"path"
	"reflect"
	"strings"
)

// Group is an element of [[optim.group]]: parameters with settings of their own.
type Group struct {
	Name        string
	Match       string   // patterns, separated by blanks
	LRFactor    *float64 // nil: 1
	WeightDecay *float64 // nil: as in [optim]
	Frozen      bool
}

// groupKeys are the keys of a group, in the order in which they are written.
var groupKeys = []string{"name", "match", "lr_factor", "weight_decay", "frozen"}

// isGroups reports whether the field is a list of groups.
func (f *field) isGroups() bool { return f.typ == reflect.TypeFor[[]Group]() }

// assignGroups stores [[optim.group]].
func assignGroups(dst reflect.Value, v any) error {
	var tables []map[string]any
	switch x := v.(type) {
	case []map[string]any:
		tables = x
	case []any:
		for i, e := range x {
			m, ok := e.(map[string]any)
			if !ok {
				return fmt.Errorf("needs tables, but element %d is %s", i+1, describe(e))
			}
			tables = append(tables, m)
		}
	default:
		return fmt.Errorf("needs a list of tables, got %s", describe(v))
	}
	groups := make([]Group, 0, len(tables))
	for i, m := range tables {
		g, err := newGroup(m)
		if err != nil {
			return fmt.Errorf("group %d: %w", i+1, err)
		}
		groups = append(groups, g)
	}
	dst.Set(reflect.ValueOf(groups))
	return nil
}

func newGroup(m map[string]any) (g Group, err error) {
	for _, key := range sortedKeys(m) {
		v, ok := m[key], false
		want := "text"
		switch key {
		case "name":
			g.Name, ok = v.(string)
		case "match":
			g.Match, ok = v.(string)
		case "lr_factor":
			want = "a number"
			g.LRFactor, ok = numberAt(v)
		case "weight_decay":
			want = "a number"
			g.WeightDecay, ok = numberAt(v)
		case "frozen":
			want = "true or false"
			g.Frozen, ok = v.(bool)
		default:
			if s := nearest(key, groupKeys); s != "" {
				return g, fmt.Errorf("unknown key %q; did you mean %s?", key, s)
			}
			return g, fmt.Errorf("unknown key %q; there are %s", key, choice(groupKeys))
		}
		if !ok {
			return g, fmt.Errorf("%s needs %s, got %s", key, want, describe(v))
		}
	}
	return g, nil
}

func numberAt(v any) (*float64, bool) {
	x, ok := number(v)
	return &x, ok
}

// inline writes the group as an inline table.
func (g Group) inline() string {
	parts := []string{"name = " + quote(g.Name), "match = " + quote(g.Match)}
	if g.LRFactor != nil {
		parts = append(parts, "lr_factor = "+float(*g.LRFactor))
	}
	if g.WeightDecay != nil {
		parts = append(parts, "weight_decay = "+float(*g.WeightDecay))
	}
	if g.Frozen {
		parts = append(parts, "frozen = true")
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// groups checks [[optim.group]] and model.freeze.
func (c *checker) groups() {
	const key = "optim.group"
	seen := map[string]bool{}
	for i, g := range c.r.Optim.Groups {
		of := fmt.Sprintf("group %d", i+1)
		if g.Name == "" {
			c.bad(key, `for example name = "head"`, "%s has no name", of)
		} else {
			of = fmt.Sprintf("group %q", g.Name)
		}
		if g.Name == frozenGroup || seen[g.Name] && g.Name != "" {
			c.bad(key, "", "there are two groups called %q", g.Name)
		}
		seen[g.Name] = true
		if strings.TrimSpace(g.Match) == "" {
			c.bad(key, `for example match = "fc.*"`, "%s matches nothing", of)
		}
		c.patterns(key, g.Match)
		if x := g.LRFactor; x != nil && !(*x > 0 && *x < 1e6) {
			c.bad(key, "frozen = true keeps the values of parameters", "%s: lr_factor must be above 0, got %g", of, *x)
		}
		if x := g.WeightDecay; x != nil && !(*x >= 0 && *x <= 10) {
			c.bad(key, "", "%s: weight_decay must lie in 0…10, got %g", of, *x)
		}
		if g.Frozen && (g.LRFactor != nil || g.WeightDecay != nil) {
			c.bad(key, "", "%s is frozen, so lr_factor and weight_decay have no meaning", of)
		}
	}
	c.patterns("model.freeze", c.r.Model.Freeze)
}

// frozenGroup is the name of the group of model.freeze.
const frozenGroup = "model.freeze"

func (c *checker) patterns(key, words string) {
	for _, p := range strings.Fields(words) {
		if _, err := path.Match(p, ""); err != nil {
			c.bad(key, "", "%q is not a pattern: %v", p, err)
		}
	}
}

// ParamGroups returns the groups in the order in which they match: model.freeze first.
func (r *Recipe) ParamGroups() []Group {
	var out []Group
	if strings.TrimSpace(r.Model.Freeze) != "" {
		out = append(out, Group{Name: frozenGroup, Match: r.Model.Freeze, Frozen: true})
	}
	return append(out, r.Optim.Groups...)
}
