package models_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models"
	_ "github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/npu"
)

// Families that this program has, and what is said about others, and about configurations that another version wrote.
func TestOpen(t *testing.T) {
	if got := models.Names(); !slices.Equal(got, []string{"llama", "resnet"}) {
		t.Fatalf("families: %v", got)
	}
	for _, c := range []struct{ name, config, want string }{
		{"vgg", `{}`, `no family "vgg", only llama, resnet`},
		{"llama", `{}`, "gotrain generate"},
		{"resnet", `{"depth": 18, "squeeze": 4}`, `unknown field "squeeze"`},
		{"resnet", `{"depth": 19}`, "no depth 19"},
		{"resnet", ``, "the configuration of the network"},
	} {
		if _, err := models.Open(c.name, []byte(c.config)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.name, c.config, err, c.want)
		}
	}
	if _, err := models.Open("llama", nil); !errors.Is(err, models.ErrNoPredictions) {
		t.Error(err)
	}
}

// A network without its input is an error of the builder, not a panic.
func TestMissingInput(t *testing.T) {
	net, err := models.Open("resnet", []byte(`{"depth": 18, "classes": 3}`))
	if err != nil {
		t.Fatal(err)
	}
	b := graph.New(graph.ForEval())
	net(b, map[string]*graph.Node{"pixels": b.Input("pixels", npu.F32, 1, 3, 32, 32)})
	if b.Err() == nil || !strings.Contains(b.Err().Error(), "image") {
		t.Error(b.Err())
	}
}

func TestRegisterTwice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a second family of the same name was accepted")
		}
	}()
	models.Register("resnet", models.Family{Instead: "nothing"})
}
