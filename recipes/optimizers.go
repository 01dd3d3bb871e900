package recipes

// optimizer is what a recipe knows about one value of optim.name.
type optimizer struct {
	name           string
	lr, decay, eps float64  // defaults of optim.lr, weight_decay and eps
	highLR         float64  // peak rates above this are unusual; 0: not checked
	highDecay      float64  // decays above this are unusual
	needsEps       bool     // eps must be above 0
	uses           []string // the keys it uses that not every rule uses
}

// optimizers are the rules, in the order of optim.name.
var optimizers = []optimizer{
	{name: "sgd", lr: 0.1, decay: 1e-4, eps: 1e-8, highLR: 4, highDecay: 0.01,
		uses: []string{"optim.momentum", "optim.nesterov", "optim.dampening", "optim.decoupled_decay"}},
	{name: "adamw", lr: 1e-3, decay: 0.01, eps: 1e-8, highLR: 0.02, highDecay: 0.5, needsEps: true, uses: []string{"optim.beta1", "optim.beta2", "optim.eps"}},
	{name: "adam", lr: 1e-3, eps: 1e-8, highLR: 0.02, highDecay: 0.01, needsEps: true, uses: []string{"optim.beta1", "optim.beta2", "optim.eps"}},
	{name: "lars", lr: 0.1, decay: 1e-4, eps: 1e-9, highDecay: 0.01,
		uses: []string{"optim.momentum", "optim.nesterov", "optim.trust_coefficient", "optim.eps"}},
	{name: "lamb", lr: 5e-3, decay: 0.02, eps: 1e-6, highLR: 0.1, highDecay: 0.5, needsEps: true,
		uses: []string{"optim.beta1", "optim.beta2", "optim.eps", "optim.trust_clip", "optim.always_adapt"}},
}

// optimizer is the rule of the recipe, or the zero value for an unknown name, which check reports.
func (r *Recipe) optimizer() optimizer {
	for _, o := range optimizers {
		if o.name == r.Optim.Name {
			return o
		}
	}
	return optimizer{}
}

// usedBy lists the keys by rule.
func usedBy() map[string][]string {
	m := map[string][]string{}
	for _, o := range optimizers {
		m[o.name] = o.uses
	}
	return m
}
