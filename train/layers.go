package train

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/optim"
)

// layersOf numbers the layers of a network from its output: 0 is the last one. A layer is what the names of parameters have in common up to their first
// number, such as layer1.0 or blocks.11; parameters without a number are the stem if they are declared before all layers, and else belong to the head, but
// for a norm called norm, which belongs to the last layer. These are timm's groups (param_groups_layer_decay), for networks whose parameters are declared from
// the input to the output.
func layersOf(params []string) map[string]int {
	var layers []string
	of := map[string]int{}
	for _, name := range params {
		layer := numbered(name)
		at := slices.Index(layers, layer)
		switch {
		case layer == "" && len(layers) == 0:
			at = -1
		case layer == "" && strings.HasPrefix(name, "norm."):
			at = len(layers) - 1
		case layer == "":
			at = math.MaxInt
		case at < 0:
			layers, at = append(layers, layer), len(layers)
		}
		of[name] = at
	}
	for name, at := range of {
		of[name] = max(0, len(layers)-at)
		if at < 0 {
			of[name] = len(layers) + 1
		}
	}
	return of
}

// numbered is the part of a name up to its first number, or "".
func numbered(name string) string {
	parts := strings.Split(name, ".")
	for i, p := range parts {
		if _, err := strconv.Atoi(p); err == nil {
			return strings.Join(parts[:i+1], ".")
		}
	}
	return ""
}

// decayLayers gives each parameter an optimizer group whose learning rate has the factor of its layer: Config.LayerDecay to the power of the number of layers
// behind it. Groups are made as they are needed, from the one that the parameter has so far.
func (c *Config) decayLayers(params []*graph.Param, of map[string]int) {
	if c.LayerDecay == 0 || c.LayerDecay == 1 {
		return
	}
	if c.layerGroup == nil {
		c.layerGroup = map[[2]int]int{}
	}
	var names []string
	for _, p := range params {
		names = append(names, p.Name)
	}
	layer := layersOf(names)
	for _, p := range params {
		key := [2]int{of[p.Name], layer[p.Name]}
		if key[1] == 0 || p.Frozen {
			continue
		}
		at, ok := c.layerGroup[key]
		if !ok {
			g := c.Optim.Groups[key[0]]
			g.Name, g.LRMult = fmt.Sprintf("%s−%d", g.Name, key[1]), g.LRMult*math.Pow(c.LayerDecay, float64(key[1]))
			at, c.Optim.Groups = len(c.Optim.Groups), append(c.Optim.Groups, g)
			c.layerGroup[key] = at
		}
		of[p.Name] = at
	}
}

// optimText describes the optimizer in a line of the log: without the groups of single layers.
func (c *Config) optimText() string {
	o := c.Optim
	if len(c.layerGroup) == 0 {
		return o.String()
	}
	made := slices.Min(slices.Collect(maps.Values(c.layerGroup)))
	o.Groups = o.Groups[:made]
	return o.String() + fmt.Sprintf(" layer_decay=%g over %d layers", c.LayerDecay, c.depth())
}

// depth is the number of layers that have a factor of their own.
func (c *Config) depth() (n int) {
	for key := range c.layerGroup {
		n = max(n, key[1])
	}
	return n + 1
}

// checkLayers reports a wrong decay.
func (c *Config) checkLayers(need func(ok bool, format string, a ...any)) {
	need(c.LayerDecay >= 0 && c.LayerDecay <= 1, "the layer-wise decay of the learning rate must lie in 0…1, got %g", c.LayerDecay)
	need(c.LayerDecay == 0 || len(c.Optim.Groups) > optim.NoDecay,
		"a layer-wise decay requires the optimizer groups decay and no_decay\nhint: start from optim.Default")
}
