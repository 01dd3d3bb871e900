package settings

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// articles are the names in articles and scripts that HCCL does not read.
var articles = []string{"HCCL_TOPOLOGY", "HCCL_BUFFER_SIZE", "HCCL_GRAD_COMPRESS", "HCCL_TIMEOUT"}

// topologies gives the words of HCCL_TOPOLOGY as HCCL_ALGO. Within a machine the algorithm cannot be chosen; there is no tree, and recursive halving
// and doubling is the closest to one.
var topologies = map[string]string{
	"mesh": "", "fullmesh": "", "auto": "",
	"tree": "level0:NA;level1:H-D_R",
	"ring": "level0:NA;level1:ring",
}

func (r *reader) topology() {
	word, set := r.Env["HCCL_TOPOLOGY"]
	word = strings.ToLower(word)
	own, has := r.Env["HCCL_ALGO"]
	if !set {
		if has {
			r.line("HCCL_ALGO", own, "environment; automatic choice is off")
		}
		return
	}
	want, known := topologies[word]
	switch {
	case !known:
		r.wrong("HCCL_TOPOLOGY", word, "it is none of mesh, fullmesh, auto, tree, ring",
			"HCCL itself does not read this variable; unset it, or set HCCL_ALGO to choose an algorithm by its own name")
	case has && own != want:
		became := "leaves the choice to HCCL"
		if want != "" {
			became = "means HCCL_ALGO=" + want
		}
		r.wrong("HCCL_TOPOLOGY", word, fmt.Sprintf("it %s, but HCCL_ALGO is %s", became, own), "unset one of them")
	case want == "":
		r.line("HCCL_ALGO", "not set", env("HCCL_TOPOLOGY", word)+"; HCCL chooses")
	default:
		if !has {
			r.set("HCCL_ALGO", want)
		}
		r.line("HCCL_ALGO", want, env("HCCL_TOPOLOGY", word)+"; level 1 is between machines")
	}
}

func (r *reader) buffer() {
	type source struct {
		mb uint64
		by string
		as string
	}
	var found []source
	if v, ok := r.Env["HCCL_BUFFER_SIZE"]; ok {
		n, err := digits(v)
		mb := n / uint64(mib)
		if n%uint64(mib) != 0 {
			mb++
		}
		switch {
		case err != nil:
			r.wrong("HCCL_BUFFER_SIZE", v, err.Error(), "give it in bytes, as 209715200, or set HCCL_BUFFSIZE in MB")
		case n == 0 || mb >= unset:
			r.wrong("HCCL_BUFFER_SIZE", v, "a buffer cannot have this size", "give it in bytes, as 209715200")
		default:
			found = append(found, source{mb, env("HCCL_BUFFER_SIZE", v) + " (bytes, rounded up)", "HCCL_BUFFER_SIZE=" + v})
		}
	}
	if v, ok := r.Env["HCCL_BUFFSIZE"]; ok {
		if n, err := digits(v); err == nil && n >= 1 && n < unset {
			found = append(found, source{n, env("HCCL_BUFFSIZE", v) + " (MB)", "HCCL_BUFFSIZE=" + v})
		}
	}
	if v, ok := r.Options[OptionBuffer]; ok && v != "0" && v != "" {
		if n, err := digits(v); err != nil || n < 1 || n >= unset {
			r.wrong(OptionBuffer, v, "it is not a number of MB", "0 leaves the size to HCCL, which takes 200")
		} else {
			found = append(found, source{n, recipe(OptionBuffer, v), OptionBuffer + "=" + v})
		}
	}
	for i := 1; i < len(found); i++ {
		if found[i].mb != found[0].mb {
			text := fmt.Sprintf("it means %d MB, but %s means %d MB", found[0].mb, found[i].as, found[i].mb)
			r.problems = append(r.problems, &Problem{shown(found[0].as), text, "unset one of them"})
		}
	}
	if len(found) == 0 {
		r.line("buffer", "200 MB", byHCCL+"; device memory for two of them")
		return
	}
	r.out.Config.BufferMB = uint32(found[0].mb)
	r.line("buffer", fmt.Sprintf("%d MB", found[0].mb), found[0].by+"; device memory for two of them")
}

// compressions gives the words of HCCL_GRAD_COMPRESS as gotrain's own type of gradients on their way. HCCL has no compression: gotrain casts.
var compressions = map[string]string{"none": "none", "off": "none", "0": "none", "": "none",
	"fp16": "f16", "float16": "f16", "f16": "f16", "bf16": "bf16", "bfloat16": "bf16"}

// compress says what becomes of gradient compression, which is not HCCL's. The recipe has it as comm.compress, and wins over the environment.
func (r *reader) compress() {
	v, ok := r.Env["HCCL_GRAD_COMPRESS"]
	if !ok {
		return
	}
	word, known := compressions[strings.ToLower(v)]
	switch {
	case strings.EqualFold(v, "int8"):
		r.wrong("HCCL_GRAD_COMPRESS", v, "NPUs have no kernels for 8 bits with error feedback", "use fp16 or bf16: the device casts them")
	case !known:
		r.wrong("HCCL_GRAD_COMPRESS", v, "it is none of none, fp16, bf16", "use fp16 or bf16, or set comm.compress in the recipe")
	default:
		r.line("compression", word, env("HCCL_GRAD_COMPRESS", v)+"; comm.compress of the recipe wins; HCCL itself has none")
	}
}

func (r *reader) timeouts() {
	v, ok := r.Env["HCCL_TIMEOUT"]
	ours := time.Duration(0)
	if ok {
		n, err := digits(v)
		if err != nil || n == 0 || n > maxTimeout {
			r.wrong("HCCL_TIMEOUT", v, "it is not a number of seconds", "give whole seconds, such as 600")
		} else {
			ours = time.Duration(n) * time.Second
		}
	}
	r.out.Timeout = ours
	if ours > 0 {
		r.line("deadline", seconds(ours)+" s", env("HCCL_TIMEOUT", v)+"; for a silent rank, if the recipe's is not shorter")
	}
	connect, by := defaultConnect, byDefault
	if ours > 0 {
		connect, by = min(max(ours, 2*time.Minute), 2*time.Hour), env("HCCL_TIMEOUT", v)
		if connect != ours {
			by += ", moved into 120 to 7200"
		}
	}
	r.give("HCCL_CONNECT_TIMEOUT", connect, by, ours)
	_, has := r.Env["HCCL_EXEC_TIMEOUT"]
	switch {
	case ours > 0:
		r.give("HCCL_EXEC_TIMEOUT", ours+execMargin, env("HCCL_TIMEOUT", v)+" and a minute, so that gotrain's error comes first", ours)
	case !has && r.LongWork+execMargin > defaultExec && !r.aiv():
		r.give("HCCL_EXEC_TIMEOUT", r.LongWork+execMargin, byDefault+"; gotrain's deadlines come first", 0)
	}
}

// aiv reports whether collectives run on vector cores, where HCCL's timeout has a low limit.
func (r *reader) aiv() bool {
	return r.Env["HCCL_OP_EXPANSION_MODE"] == "AIV" || expansions[r.Options[OptionExpansion]] == ExpansionAIV
}

// give sets a variable in seconds unless the user did. A value of the user's below his own HCCL_TIMEOUT is a contradiction: HCCL would give up first.
func (r *reader) give(name string, d time.Duration, by string, ours time.Duration) {
	own, has := r.Env[name]
	if !has {
		r.set(name, seconds(d))
		r.line(name, seconds(d)+" s", by)
		return
	}
	r.line(name, own+" s", "environment")
	f, err := strconv.ParseFloat(own, 64)
	never := name == "HCCL_EXEC_TIMEOUT" && f == 0
	if err == nil && !never && ours > 0 && f < min(ours, 2*time.Hour).Seconds() {
		r.wrong("HCCL_TIMEOUT", r.Env["HCCL_TIMEOUT"], fmt.Sprintf("%s=%s ends earlier", name, own), "unset "+name+": it follows HCCL_TIMEOUT")
	}
}

func (r *reader) deterministic() {
	word, inEnv := r.Env["HCCL_DETERMINISTIC"]
	opt, inOpt := r.Options[OptionDeterministic]
	if inOpt && opt != "true" && opt != "false" {
		r.wrong(OptionDeterministic, opt, "it is neither true nor false", "")
		return
	}
	on := true
	by := byDefault + "; sums have the same bits from run to run"
	switch {
	case inEnv && inOpt && (word == "false") != (opt == "false"):
		r.wrong("HCCL_DETERMINISTIC", word, "the recipe says "+OptionDeterministic+" = "+opt, "unset the variable: the recipe decides for kernels and HCCL together")
		return
	case word == "strict": // the structure cannot say it; HCCL reads the variable where the structure leaves it open
		r.line("deterministic", "strict", env("HCCL_DETERMINISTIC", word))
		return
	case inEnv:
		on, by = word != "false", env("HCCL_DETERMINISTIC", word)
	case inOpt:
		on, by = opt == "true", recipe(OptionDeterministic, opt)
	}
	r.out.Config.Deterministic = &on
	r.line("deterministic", strconv.FormatBool(on), by)
}

func (r *reader) expansion() {
	word, ok := r.Options[OptionExpansion]
	mode, has := r.Env["HCCL_OP_EXPANSION_MODE"]
	e, known := expansions[word]
	switch {
	case !known:
		r.wrong(OptionExpansion, word, "it is none of host, ai_cpu, aiv", "leave it out: HCCL chooses by the device")
	case ok && e != ExpansionDefault && has && map[Expansion]string{ExpansionHost: "HOST", ExpansionAICPU: "AI_CPU", ExpansionAIV: "AIV"}[e] != mode:
		r.wrong(OptionExpansion, word, "HCCL_OP_EXPANSION_MODE is "+mode, "unset one of them")
	case e == ExpansionHost && r.SoC == "A3":
		r.wrong(OptionExpansion, word, "A3 devices have ai_cpu and aiv", "leave it out: HCCL chooses by the device")
	case e != ExpansionDefault:
		r.out.Config.Expansion = e
		r.line("expansion", word, recipe(OptionExpansion, word))
	}
	if r.aiv() {
		r.line("note", "AIV", "meant for inference: HCCL allows it for one communicator of a process only")
	}
}

// ports lets the system choose HCCL's ports. With fixed ones two jobs on a machine collide.
func (r *reader) ports() {
	for _, name := range []string{"HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_NPU_SOCKET_PORT_RANGE"} {
		if own, ok := r.Env[name]; ok {
			r.line(name, own, "environment")
			continue
		}
		if base, ok := r.Env["HCCL_IF_BASE_PORT"]; ok {
			if name == "HCCL_HOST_SOCKET_PORT_RANGE" {
				r.line("HCCL_IF_BASE_PORT", base, "environment; 32 ports from there")
			}
			continue
		}
		r.set(name, "auto")
		r.line(name, "auto", byDefault+"; two jobs on a machine do not collide")
	}
}
