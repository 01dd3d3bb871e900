#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""Write traces of optimizers, schedules and loss scaling: optimizers.json, schedules.json, scaler.json.

    python3 make_traces.py [FOLDER]        # needs torch and numpy

PyTorch (torch.optim, torch.nn.utils, torch.amp) in float64 where it has the rule; numpy float64 with the formula of npu/kinds.go where it
has not (decoupled SGD, LARS). README.md beside this file describes the format.
"""
import json, math, os, sys

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
RNG = np.random.default_rng(20260102)
STEPS = 12
SHAPES = {"weight": (5, 7), "gain": (8,), "bias": (7,)}
MADE_BY = f"make_traces.py with PyTorch {torch.__version__}, no third-party data"

# float32 values, so that both sides start from the same numbers. Gradients shrink and turn, as in a training.
START = {k: (RNG.standard_normal(s) * 0.5).astype(np.float32) for k, s in SHAPES.items()}
GRADS = [{k: (RNG.standard_normal(s) * 2.0 ** -(i / 3) + 0.2 * START[k]).astype(np.float32) for k, s in SHAPES.items()} for i in range(STEPS)]
LRS = [0.1 * (1 + math.cos(math.pi * i / STEPS)) / 2 + 0.01 for i in range(STEPS)]


def flat(d):
    """Rounded to nine digits: all that float32 holds."""
    return {k: [float(f"{x:.9g}") for x in np.asarray(v, np.float64).ravel()] for k, v in d.items()}


def state_of(opt, params):
    """The optimizer's vectors under gotrain's names."""
    names = {"momentum_buffer": "momentum", "exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"}
    out = {}
    for k, p in params.items():
        for key, name in names.items():
            v = opt.state[p].get(key)
            if v is not None:
                out.setdefault(name, {})[k] = v.numpy()
    return {n: flat(v) for n, v in out.items()}


def run_torch(name, config, make, grad_scale=1.0, clip=0.0, lr_scale=1.0):
    params = {k: torch.nn.Parameter(torch.from_numpy(v).double()) for k, v in START.items()}
    opt = make([{"params": [params["weight"]], "weight_decay": config["decay"]}, {"params": [params["gain"], params["bias"]], "weight_decay": 0.0}])
    trace, norms = [], []
    for i in range(STEPS):
        for group in opt.param_groups:
            group["lr"] = LRS[i] * lr_scale
        for k, p in params.items():
            p.grad = torch.from_numpy(GRADS[i][k]).double() * grad_scale
        if clip:
            norms.append(float(torch.nn.utils.clip_grad_norm_(params.values(), clip)))
        opt.step()
        trace.append(flat({k: p.detach().numpy() for k, p in params.items()}))
    c = {"name": name, "config": config, "grad_scale": grad_scale, "clip": clip, "lr": [x * lr_scale for x in LRS],
         "weights": trace, "state": state_of(opt, params)}
    if clip:
        c["norms"] = norms
    return c


def run_numpy(name, config, step, lr_scale=1.0):
    w = {k: v.astype(np.float64) for k, v in START.items()}
    m = {k: np.zeros(v.shape) for k, v in START.items()}
    trace = []
    for i in range(STEPS):
        for k in w:
            w[k], m[k] = step(w[k], GRADS[i][k].astype(np.float64), m[k], LRS[i] * lr_scale, config["decay"] if k == "weight" else 0.0, i == 0, k != "weight")
        trace.append(flat(w))
    return {"name": name, "config": config, "grad_scale": 1.0, "clip": 0.0, "lr": [x * lr_scale for x in LRS], "weights": trace, "state": {"momentum": flat(m)}}


def sgd_decoupled(mu, nesterov):
    def step(w, g, m, lr, wd, first, _):
        w = w - lr * wd * w
        m = g if first else mu * m + g
        return w - lr * (g + mu * m if nesterov else m), m
    return step


def lars(mu, nesterov, trust, eps):
    def step(w, g, m, lr, wd, first, no_adapt):
        wn, gn = np.linalg.norm(w), np.linalg.norm(g)
        if no_adapt:
            wd = 0.0
        local = 1.0 if no_adapt or wn == 0 or gn == 0 else trust * wn / (gn + wd * wn + eps)
        d = local * lr * (g + wd * w)
        m = d if first else mu * m + d
        return w - (d + mu * m if nesterov else m), m
    return step


def optimizers():
    O, out = torch.optim, []

    def sgd(name, mu=0.0, damp=0.0, nest=False, decay=0.0, **kw):
        out.append(run_torch(name, {"rule": "sgd", "momentum": mu, "dampening": damp, "nesterov": nest, "decoupled": False, "decay": decay},
                             lambda g: O.SGD(g, lr=1.0, momentum=mu, dampening=damp, nesterov=nest), **kw))

    def adam(name, rule, cls, b1=0.9, b2=0.999, eps=1e-8, decay=0.0, **kw):
        out.append(run_torch(name, {"rule": rule, "beta1": b1, "beta2": b2, "eps": eps, "decay": decay},
                             lambda g: cls(g, lr=1.0, betas=(b1, b2), eps=eps), lr_scale=0.1, **kw))
    sgd("sgd_plain")
    sgd("sgd_decay", decay=0.05)
    sgd("sgd_momentum", mu=0.9, decay=1e-2)
    sgd("sgd_dampening", mu=0.9, damp=0.5, decay=1e-2)
    sgd("sgd_nesterov", mu=0.9, nest=True, decay=1e-2)
    sgd("sgd_grad_scale", mu=0.9, decay=1e-2, grad_scale=1 / 64)
    sgd("sgd_clip", mu=0.9, decay=1e-2, clip=1.5)
    adam("adamw", "adamw", O.AdamW, decay=0.1)
    adam("adamw_llm", "adamw", O.AdamW, b2=0.95, eps=1e-5, decay=0.1, clip=1.0)
    adam("adam", "adam", O.Adam)
    adam("adam_coupled", "adam", O.Adam, decay=0.1)
    for nest in (False, True):
        out.append(run_numpy("sgd_decoupled" + ("_nesterov" if nest else ""),
                             {"rule": "sgd", "momentum": 0.9, "dampening": 0.0, "nesterov": nest, "decoupled": True, "decay": 0.05}, sgd_decoupled(0.9, nest)))
        out.append(run_numpy("lars" + ("_nesterov" if nest else ""),
                             {"rule": "lars", "momentum": 0.9, "nesterov": nest, "trust": 0.01, "eps": 1e-9, "decay": 1e-2}, lars(0.9, nest, 0.01,
                                 1e-9), lr_scale=10))
    return {"made_by": MADE_BY, "shapes": {k: list(v) for k, v in SHAPES.items()}, "start": flat(START), "grads": [flat(g) for g in GRADS], "cases": out}


def schedules():
    """Learning rate of each step, from chained torch.optim.lr_scheduler objects; wsd's last part is a LambdaLR."""
    L = torch.optim.lr_scheduler
    peak, out = 0.4, []

    def case(name, config, main, total):
        warm = config["warmup"]
        opt = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=peak)
        if warm:  # SequentialLR starts the second at its own step 0 when the first has ended
            sched = L.SequentialLR(opt, [L.LambdaLR(opt, lambda s: (s + 1) / warm), main(opt)], [warm])
        else:
            sched = main(opt)
        lr = []
        for _ in range(total + 1):
            lr.append(opt.param_groups[0]["lr"])
            opt.step()
            sched.step()
        out.append({"name": name, "config": {"peak": peak, **config}, "lr": lr})
    case("constant", {"shape": "constant", "warmup": 0, "total": 10}, lambda o: L.LambdaLR(o, lambda s: 1.0), 10)
    case("constant_warmup", {"shape": "constant", "warmup": 4, "total": 10}, lambda o: L.LambdaLR(o, lambda s: 1.0), 10)
    for warm, low in ((0, 0.0), (5, 0.0), (5, 0.1)):
        n = 30 - warm
        s = f"_warmup{warm}_min{low}"
        base = {"warmup": warm, "total": 30, "min_ratio": low}
        case("cosine" + s, {"shape": "cosine", **base}, lambda o: L.CosineAnnealingLR(o, n, eta_min=low * peak), 30)
        case("linear" + s, {"shape": "linear", **base}, lambda o: L.LinearLR(o, 1.0, max(low, 1e-300), n), 30)
        case("wsd" + s, {"shape": "wsd", **base, "decay": 8}, lambda o: L.LambdaLR(o, lambda t: low + (1 - low) * (1 - math.sqrt(min(max(t - (n - 8),
            0) / 8, 1)))), 30)
        if low:
            continue  # a step schedule has no floor in PyTorch
        case("step" + s, {"shape": "step", "warmup": warm, "total": 30, "min_ratio": 0.0, "milestones": [10, 20, 25], "gamma": 0.1},
             lambda o: L.MultiStepLR(o, [m - warm for m in (10, 20, 25)], 0.1), 30)
    return {"made_by": MADE_BY, "cases": out}


def scaler():
    """torch.amp.GradScaler over a script of good and bad steps, with an AdamW that must not count the skipped ones."""
    out = []
    scripts = {"grows": [0] * 10, "one_bad": [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], "bad_from_the_start": [1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0,
        0, 0, 0, 0, 0]}
    for name, bad in scripts.items():
        for conf in ({"init": 65536.0, "growth": 2.0, "backoff": 0.5, "interval": 3}, {"init": 1024.0, "growth": 4.0, "backoff": 0.25, "interval": 4}):
            s = torch.amp.GradScaler("cpu", init_scale=conf["init"], growth_factor=conf["growth"], backoff_factor=conf["backoff"],
                growth_interval=conf["interval"])
            w = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0], dtype=torch.float32))
            opt = torch.optim.AdamW([w], lr=0.01, weight_decay=0.1)
            steps = []
            for i, b in enumerate(bad):
                opt.zero_grad()
                before, old = s.get_scale(), w.detach().clone()
                loss = (w * torch.tensor([0.5, 0.25 * (i + 1), -1.0])).sum()
                s.scale(loss).backward()
                if b:
                    w.grad[i % 3] = float("inf") if i % 2 else float("nan")
                s.step(opt)
                s.update()
                steps.append({"bad": bool(b), "scale": before, "scale_after": s.get_scale(), "skipped": bool(torch.equal(old, w.detach())),
                              "weights": [float(f"{x:.9g}") for x in w.detach().tolist()]})
            out.append({"name": f"{name}_every{conf['interval']}", "config": conf, "steps": steps})
    return {"made_by": MADE_BY, "adamw": {"lr": 0.01, "decay": 0.1, "start": [1.0, -2.0, 3.0], "grads": "[0.5, 0.25*(step+1), -1] with step from 0"},
        "cases": out}


def write(folder, name, value):
    text = json.dumps(value)
    text = text.replace('{"name"', '\n{"name"')  # a case a line
    with open(os.path.join(folder, name), "w") as f:
        f.write(text + "\n")
    print(name, len(text), "bytes,", len(value["cases"]), "cases")


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    write(folder, "optimizers.json", optimizers())
    write(folder, "schedules.json", schedules())
    write(folder, "scaler.json", scaler())
