// Package models is the registry of network families: it makes a network from a name and a configuration in JSON, as checkpoints hold them.
//
//	import _ "github.com/gotrain/gotrain/graph/models/resnet"
//
//	net, err := models.Open("resnet", []byte(`{"depth": 50, "classes": 102}`))
//	logits := net(b, map[string]*graph.Node{"image": x})                        // [N 102]
//
// A family is a package that registers itself in init; a program imports it for that side effect, as it does with devices. Recipes train the network
// that Open returns, checkpoints keep name and configuration, and package train/predict opens the same network from there, so that what was trained and
// what predicts cannot differ.
package models
