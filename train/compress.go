package train

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/compress"
	"github.com/gotrain/gotrain/ddp/launch"
)

// Compress says how gradients travel between ranks.
type Compress struct {
	Codec      string // f16, bf16 or int8, see package ddp/compress; "": as float32
	Block      int    // int8: values with a common scale; 0: 256
	NoFeedback bool   // int8: what rounding loses is not added in the next step
}

func (c Compress) on() bool { return c.Codec != "" && c.Codec != "none" }

// String is "" without a codec.
func (c Compress) String() string {
	if !c.on() {
		return ""
	}
	return fmt.Sprintf("%s block %d feedback %v", c.Codec, c.Block, !c.NoFeedback)
}

// compressing returns the options of the codec. Parameters of one dimension, norms and biases, are few and suffer most: they stay float32.
func (t *Trainer) compressing() compress.Options {
	flat := map[string]bool{}
	for _, p := range t.train.net.b.Params() {
		flat[p.Name] = len(p.Shape) < 2
	}
	o := compress.Options{Block: t.cfg.Compress.Block, NoFeedback: t.cfg.Compress.NoFeedback, Raw: func(param string) bool { return flat[param] }}
	if _, ok := t.data.(comm.Ordered); ok { // the host does not see gradients
		o.Device = t.dev
	}
	if o.Factor = 1; !t.cfg.scales() { // scaled gradients are those of a mean already, and the scale shrinks when they do not fit
		o.Factor = compress.Factor(t.usualCount())
	}
	return o
}

// openCodec makes the codec that Config.Compress names, unless the caller has brought one.
func (t *Trainer) openCodec() (err error) {
	if c := t.cfg.Compress; c.on() && t.cfg.Codec == nil && t.comm.Size() > 1 && !t.evaluating {
		if t.cfg.Codec, err = compress.New(c.Codec, t.compressing()); err != nil {
			return launch.WithCode(launch.ExitRecipe, err)
		}
		t.sayUse()
	}
	return nil
}

// measures reports whether the norm of the gradients is measured: for a limit, with loss scaling, and where only the device sees what a codec decodes.
func (t *Trainer) measures() bool {
	_, device := t.eng.Codec().(ddp.DeviceCodec)
	return t.cfg.ClipNorm > 0 || t.cfg.scales() || device
}

// sayUse tells once when the codec is a bad choice for where the ranks are.
func (t *Trainer) sayUse() {
	_, each := comm.Even(t.data)
	if why := useless(t.cfg.Compress.Codec, t.cfg.LocalSize, t.comm.Size(), each); why != "" && t.comm.Rank() == 0 {
		slog.Warn(fmt.Sprintf("compress = %s %s", t.cfg.Compress.Codec, why))
	}
}

// useless says why a codec is a bad choice; "" if it is not. each is the number of ranks of every machine, if they have as many.
//
// Machines with as many ranks each add up gradients before any codec, so a machine sends 2 gradients in float32, 1 in 16 bits and half of one in int8 (times
// (N-1)/N for N machines). If they have different numbers of ranks, or ranks of a machine do not share memory, a codec works between all ranks: of int8 every
// rank of a machine with L of them sends its own gradient, a quarter of one, and the machine a quarter of the sum: (L+1)/4.
func useless(codec string, local, world, each int) string {
	sent := float64(local+1) / 4
	const apart = "machines have different numbers of ranks, or ranks of a machine do not share memory"
	switch {
	case local == world:
		return "has no use: all ranks share one machine, where encoding takes longer than moving float32"
	case each > 0:
		return ""
	case codec == "int8" && sent >= 2:
		return fmt.Sprintf("has no use with %d ranks on this machine: %s, so each sends its own gradients to the other machines, %.2g times what they send in "+
			"float32; use bf16, which machines add up before they send it", local, apart, sent/2)
	case codec == "int8" && sent > 1:
		return fmt.Sprintf("with %d ranks on this machine sends %.2g times as much to the other machines as bf16, which they add up before they send it: %s",
			local, sent, apart)
	}
	return ""
}

// compressed is what a codec takes on a rank for a plan of buckets, if it works between hosts of each ranks (ddp.Engine.CodecHosts); zero without one.
func (t *Trainer) compressed(codec string, p *bucket.Plan, hosts, each int) compress.Cost {
	if codec == "" || codec == "none" || hosts == 1 {
		return compress.Cost{}
	}
	if part, _, err := p.Part(0, each); err == nil {
		p = part
	}
	return compress.Costs(codec, t.compressing(), p, hosts)
}

// between is between how many hosts, of how many ranks each, a codec will work where ranks are spread evenly: a device with memory of its own encodes itself,
// between all ranks.
func (t *Trainer) between(ranks, hosts int) (int, int) {
	if hosts > 1 && ranks%hosts == 0 && !t.dev.Info().Separate {
		return hosts, ranks / hosts
	}
	return ranks, 1
}

// checkCompress reports faults of Config.Compress.
func (c *Config) checkCompress(need func(ok bool, format string, a ...any)) {
	if c.Compress.on() {
		need(slices.Contains(compress.Names(), c.Compress.Codec), "no codec %q\nhint: use one of none, %v", c.Compress.Codec, compress.Names())
	}
}
