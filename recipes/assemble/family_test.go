package assemble

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
)

// perceptron is a family of somebody else's: all that gotrain knows of it is what it registers.
type perceptron struct {
	Hidden int     `toml:"hidden" default:"16" min:"1" max:"4096" doc:"Width of the hidden layer."`
	Drop   float64 `toml:"drop" default:"0" min:"0" max:"0.9" doc:"Probability of dropout."`
	Act    string  `toml:"act" default:"relu" oneof:"relu|tanh" doc:"The function between the layers."`
}

type perceptronConfig struct {
	Hidden, Classes int
	Drop            float64
}

func init() {
	models.Register("perceptron", models.Family{
		Open: func(raw json.RawMessage) (models.Network, error) {
			c, err := models.Config[perceptronConfig](raw)
			return func(b *graph.Builder, in map[string]*graph.Node) *graph.Node {
				x := b.Relu(nn.Linear{Out: c.Hidden}.Apply(b, "hidden", b.Flatten(in["image"])))
				return nn.Linear{Out: c.Classes}.Apply(b, "out", b.Dropout(x, c.Drop))
			}, err
		},
		Recipe: &models.Recipe{Reads: models.Images, Keys: []string{"model.classes", "model.label_smoothing"}, Section: models.Keys[perceptron]{
			Doc: "A perceptron.",
			Check: func(k *perceptron, of models.Values) []models.Problem {
				if k.Drop > 0 && of.Value("train.batch_per_rank").(int) < 2 {
					return []models.Problem{{Key: "perceptron.drop", Msg: "needs more samples", Hint: "set train.batch_per_rank"}}
				}
				return nil
			},
			Config: func(k *perceptron, _ models.Values, classes int) (any, error) {
				return perceptronConfig{k.Hidden, classes, k.Drop}, nil
			},
		}.Section()},
	})
}

const perceptronRecipe = `[run]
steps = 3

[model]
name = "perceptron"

[perceptron]
hidden = 8

[data]
kind = "synthetic"
image_size = 8
`

// A family that only registers itself trains from a recipe: its section is decoded, written, compared and kept in checkpoints like any other.
func TestOwnFamily(t *testing.T) {
	dir := t.TempDir()
	r, err := recipes.Decode(perceptronRecipe, "own.toml", "perceptron.drop=0.25", "run.output_dir="+dir, "model.classes=4")
	if err != nil {
		t.Fatal(err)
	}
	if k := recipes.Keys[perceptron](r); *k != (perceptron{8, 0.25, "relu"}) {
		t.Errorf("%+v", *k)
	}
	again, err := recipes.Decode(r.String(), "own.toml")
	if err != nil || again.String() != r.String() || !strings.Contains(r.String(), "[perceptron]\nhidden = 8\ndrop = 0.25\n") {
		t.Errorf("%v\n%s", err, r)
	}
	if s := r.Settings(); s["perceptron.hidden"] != "8" {
		t.Error(s)
	}
	c, err := Config(t.Context(), r, rank(1))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.Network.Family, " ", string(c.Network.Config)); got != `perceptron {"Hidden":8,"Classes":4,"Drop":0.25}` {
		t.Error(got)
	}
	c.Device = "ref"
	tr, err := train.New(func(to *train.Config) { *to = c })
	if err != nil {
		t.Fatal(err)
	}
	if res, err := tr.Run(t.Context()); err != nil || res.Steps != 3 {
		t.Errorf("%+v, %v", res, err)
	}
}

// Its mistakes are reported like those of other sections, with file and line, and recipes of other networks do not hold it.
func TestOwnFamilyProblems(t *testing.T) {
	_, err := recipes.Decode(strings.Replace(perceptronRecipe, "hidden = 8", "hiden = 8\nact = \"tanhh\"\ndrop = 0.5", 1), "own.toml", "train.batch_per_rank=1")
	var all recipes.Errors
	if !errors.As(err, &all) || len(all) != 3 {
		t.Fatal(err)
	}
	for i, want := range []string{`own.toml:8: perceptron.hiden: unknown key (did you mean "hidden"?)`, `own.toml:9: perceptron.act: unknown value "tanhh"`,
		"own.toml:10: perceptron.drop: needs more samples"} {
		if !strings.Contains(all[i].String(), want) {
			t.Errorf("%v, want %s", all[i], want)
		}
	}
	r := recipe(t, "quickstart")
	if strings.Contains(r.String(), "perceptron") || r.Settings()["perceptron.hidden"] != "" {
		t.Error(r)
	}
	r = recipe(t, "quickstart", "perceptron.hidden=3")
	w := strings.Join(r.Warnings(), " ")
	if !strings.Contains(w, `perceptron.hidden: has no effect with model.name = "resnet"`) || !strings.Contains(r.String(), "hidden = 3") {
		t.Error(w)
	}
}
