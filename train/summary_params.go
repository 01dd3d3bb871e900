package train

import "slices"

// ParamItem is one parameter, and how it is trained.
type ParamItem struct {
	Name        string  `json:"name"`
	Shape       []int   `json:"shape"`
	Group       string  `json:"group,omitempty"` // of Config.Groups; "": none
	Frozen      bool    `json:"frozen,omitempty"`
	LRFactor    float64 `json:"lr_factor"` // times the learning rate of the step; 0 if it is frozen
	WeightDecay float64 `json:"weight_decay"`
}

// summariseParams lists and counts parameters and running statistics.
func (t *Trainer) summariseParams(s *Summary) error {
	params := t.train.net.b.Params()
	groups, err := t.cfg.optimGroups(params)
	if err != nil {
		return err
	}
	for _, p := range params {
		item := ParamItem{Name: p.Name, Shape: slices.Clone(p.Shape), Group: p.Group, Frozen: p.Frozen}
		s.Params += p.Shape.Elems()
		if !p.Frozen {
			g := t.cfg.Optim.Groups[groups[p.Name]]
			item.LRFactor, item.WeightDecay = g.LRMult, g.WeightDecay
			s.Trained += p.Shape.Elems()
		}
		s.Parameters = append(s.Parameters, item)
	}
	for _, x := range t.train.prog.States() {
		s.States += x.Desc.Shape.Elems()
	}
	return nil
}
