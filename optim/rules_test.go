package optim

import (
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
)

// Every rule of the table is whole, and a rule that is not in it is an error wherever it is named, never another optimizer.
func TestRulesTable(t *testing.T) {
	for _, name := range Rules() {
		c := Default(name, 0.1)
		if err := c.Validate(); err != nil {
			t.Errorf("%s: its own defaults: %v", name, err)
		}
		if !strings.HasPrefix(c.String(), name+" ") || len(c.States()) == 0 {
			t.Errorf("%s: %q with state %v", name, c, c.States())
		}
		r, err := c.rule()
		if err != nil || r.check == nil || r.hyper == nil || r.op == nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	for _, name := range []string{"", "adamax", "ADAM", "sgd "} {
		c := Default(AdamW, 0.1)
		c.Rule = name
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "unknown rule") ||
			!strings.Contains(err.Error(), "one of sgd, adamw, adam, lars, lamb") {
			t.Errorf("%q: %v", name, err)
		}
		if c.States() != nil || strings.Contains(c.String(), "betas") || Default(name, 0).Beta1 != 0 {
			t.Errorf("%q is taken for an Adam: %s", name, c)
		}
		dev, err := ref.Open(npu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(dev, c, nil); err == nil || !strings.Contains(err.Error(), "unknown rule") {
			t.Errorf("%q: New: %v", name, err)
		}
		dev.Close()
	}
}
