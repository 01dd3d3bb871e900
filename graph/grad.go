package graph

import (
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
	"gorgonia.org/gorgonia"
)

// gradPass is what is known of the backward pass.
type gradPass struct {
	running, done bool
	start         int               // nodes before it are forward
	parts         map[*Node][]*Node // gradients that the users of a node sent to it, in order
	foreign       map[*Node]bool    // nodes with a built-in among their users: their parts are not known
	of            map[*Param]*Node
}

// Loss sets what is minimised: a float32 scalar, as a rule the SUM over the batch, because only the trainer knows how many items all
// ranks have together. It becomes the output "loss". In training it is multiplied by the input LossScaleInput before Grad.
// Several losses must be added first.
func (b *Builder) Loss(n *Node) {
	if b.err != nil || !b.owns(n, "loss") {
		return
	}
	if b.loss != nil {
		b.Failf("the loss is already set\nhint: add the two losses and set the sum")
		return
	}
	if d := b.Desc(n); b.err == nil && !d.Equal(npu.D(npu.F32)) {
		b.Failf("the loss is %s, want an f32 scalar\nhint: reduce it with Builder.Sum, or use the loss of CrossEntropy", d)
		return
	}
	b.loss = n
	b.Output("loss", n)
	if b.training {
		b.scaled = b.Mul(n, b.Input(LossScaleInput, npu.F32))
	}
}

// Grad adds the backward pass: the gradients of the loss with respect to every parameter that is not frozen. It is called once; Lower and Compile
// call it where the model did not. An error is the Builder's sticky one.
func (b *Builder) Grad() error {
	switch {
	case !b.outside():
	case !b.training:
		b.Failf("Grad on a graph for evaluation")
	case b.loss == nil:
		b.Failf("Grad without a loss\nhint: call Builder.Loss first")
	case b.grad.done:
		// A second Grad of Gorgonia's would silently reuse the gradients of the first.
		b.Failf("Grad is called twice")
	}
	if b.err != nil {
		return b.err
	}
	path := b.path
	b.path = ""
	mu.Lock()
	defer mu.Unlock()
	b.backward()
	b.path = path
	return b.err
}

// backward runs Gorgonia's differentiation and checks what came out. mu is held.
func (b *Builder) backward() {
	b.grad.done = true
	users := b.users()
	reached := b.reach()
	if b.err != nil {
		return
	}
	params, wrt := b.wrt(reached)
	b.grad.of = map[*Param]*Node{}
	if b.err != nil || len(wrt) == 0 {
		return
	}
	b.grad.start = b.g.AllNodes().Len()
	b.grad.parts = map[*Node][]*Node{}
	b.grad.foreign = map[*Node]bool{}
	for n, us := range users {
		for _, u := range us {
			switch u.Op().(type) {
			case *call, *pick:
			default:
				b.grad.foreign[n] = b.grad.foreign[n] || reached[u]
			}
		}
	}
	b.grad.running = true
	grads, err := safeGrad(b.scaled, wrt)
	b.grad.running = false
	if err != nil {
		b.Failf("gradient: %w", err)
		return
	}
	for i, p := range params {
		g := grads[i]
		if err := b.checkGrad(p, g); err != nil {
			b.Failf("gradient of %q: %w", p.Name, err)
			return
		}
		b.grad.of[p] = g
	}
}

func safeGrad(cost *Node, wrt gorgonia.Nodes) (g gorgonia.Nodes, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("gorgonia: %v", p)
		}
	}()
	return gorgonia.Grad(cost, wrt...)
}

// wrt lists the parameters to differentiate with respect to.
func (b *Builder) wrt(reached map[*Node]bool) (params []*Param, nodes gorgonia.Nodes) {
	var lost []string
	for _, p := range b.params {
		switch {
		case p.Frozen:
		case reached[p.Node]:
			params, nodes = append(params, p), append(nodes, p.Node)
		default:
			lost = append(lost, p.Name)
		}
	}
	if len(lost) > 0 && !b.unreachedOK {
		b.Failf(
			"the loss does not depend on %d parameter(s): %s\nhint: remove or freeze them, or pass graph.AllowUnreached to graph.New",
			len(lost),
			strings.Join(lost, ", "),
		)
	}
	return params, nodes
}

// differentiate is called by Gorgonia for each call on the way back.
func (b *Builder) differentiate(c *call, in gorgonia.Nodes, out, dy *Node) (gorgonia.Nodes, error) {
	if err := b.checkSum(out, dy); err != nil {
		return nil, fmt.Errorf("%s %s: %w", c.kind.Name, where(c), err)
	}
	path := b.path
	b.path = c.path
	defer func() { b.path = path }()
	oc := op.Call{Attrs: c.attrs, DOut: b.ref(dy, 0)}
	for _, n := range in {
		oc.In = append(oc.In, b.ref(n, 0))
	}
	for i := range c.out {
		oc.Out = append(oc.Out, b.ref(out, i))
	}
	refs, err := c.kind.Grad(tape{b}, oc)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", c.kind.Name, where(c), err)
	}
	grads := make(gorgonia.Nodes, len(in))
	for i, want := range c.DiffWRT(len(in)) {
		if !want {
			continue
		}
		if i >= len(refs) || refs[i] == nil {
			return nil, fmt.Errorf("%s %s: its rule returns no gradient for input %d", c.kind.Name, where(c), i)
		}
		if d := refs[i].Desc(); !d.Equal(c.in[i]) {
			return nil, fmt.Errorf("%s %s: its rule returns %s as the gradient of input %d, which is %s", c.kind.Name, where(c), d, i, c.in[i])
		}
		grads[i] = refs[i].(value).node()
		b.grad.parts[in[i]] = append(b.grad.parts[in[i]], grads[i])
	}
	return grads, b.err
}

// checkSum verifies that the gradient which Gorgonia hands on for n is the left fold of the parts that n's users sent: its
// additions are built-in nodes, which may merge by a clash of hashes.
func (b *Builder) checkSum(n, dy *Node) error {
	parts := b.grad.parts[n]
	if b.grad.foreign[n] || len(parts) == 0 {
		return nil
	}
	sum := dy
	for i := len(parts) - 1; i > 0; i-- {
		kids := children(sum)
		if _, own := sum.Op().(*call); own || len(kids) != 2 || kids[1] != parts[i] {
			return fmt.Errorf("gorgonia merged the sum of its gradients with another node\nhint: pass graph.Salt(1) to graph.New")
		}
		sum = kids[0]
	}
	if sum != parts[0] {
		return fmt.Errorf("gorgonia merged its gradient with another node\nhint: pass graph.Salt(1) to graph.New")
	}
	return nil
}

func (b *Builder) checkGrad(p *Param, g *Node) error {
	if g == nil {
		return fmt.Errorf("gorgonia returned none")
	}
	if err := b.checkSum(p.Node, g); err != nil {
		return err
	}
	d, err := descOf(g)
	if err != nil {
		return err
	}
	if want := npu.D(npu.F32, p.Shape...); !d.Equal(want) {
		return fmt.Errorf("is %s, want %s", d, want)
	}
	return nil
}
