package assemble

import (
	"encoding/json"

	"github.com/gotrain/gotrain/graph/models/resnet"
	"github.com/gotrain/gotrain/recipes"
)

// resnetConfig is the network's configuration, as checkpoints keep it. The network that trains is made from it, too.
func resnetConfig(r *recipes.Recipe, classes int) (json.RawMessage, error) {
	m := r.Model
	return json.Marshal(resnet.Config{
		Depth: m.Depth, Classes: classes, Width: m.Width, V1: m.Version == "v1", SmallStem: m.SmallStem, ZeroInitLast: m.ZeroInitResidual, DropPath: m.DropPath,
		Eps: m.NormEps, Momentum: m.NormMomentum,
	})
}
