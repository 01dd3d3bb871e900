# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""The cases of vision transformers, for make_fixtures.py, which calls add with itself: layernorm, gelu."""
import numpy as np
import torch
import torch.nn.functional as F

from language import eighths


def add(m):
    for part in (layer_norms, gelus):
        part(m)


def layer_norms(m):
    def one(name, shape, eps, residual=False, scale=1.0, shift=0.0):
        n, d = "layernorm/" + name, shape[-1]
        x = eighths(m, *shape) if residual else m.rand(*shape, scale=scale, shift=shift)
        ins = {"x": x, "w": m.positive(d), "b": m.rand(d)}
        if residual:
            ins["res"] = eighths(m, *shape)

        def f(x, w, b, res=None):
            s = x if res is None else x + res
            y = F.layer_norm(s, (d,), w, b, eps), s.mean(-1), 1 / torch.sqrt(s.var(-1, unbiased=False) + eps)
            return y if res is None else y + (s,)
        outs = ("y", "mean", "rstd", "sum") if residual else ("y", "mean", "rstd")
        ins, y, dy, g = m.case(n, "layernorm", {"eps": eps, "add": residual}, f, ins, outs)
        s = (n + "/sum", y["sum"]) if residual else (n + "/x", x)
        back = [(n + "/dy", dy["y"]), s, (n + "/w", ins["w"]), (n + "/mean", y["mean"]), (n + "/rstd", y["rstd"])]
        params = [(n + "/dw", g["w"]), (n + "/db", g["b"])]
        m.raw(n + "/bwd", "layernorm_bwd", {"eps": eps, "add": False}, back, [(n + "/dx", g["x"])] + params)
        dres = m.rand(*shape)
        m.raw(n + "/bwd_add", "layernorm_bwd", {"eps": eps, "add": True}, back + [(n + "/more", dres)], [(n + "/dx_add", g["x"] + m.t(dres))] + params)
    one("vector", (7,), 1e-5)
    one("matrix", (5, 19), 1e-5)
    one("cube", (2, 3, 32), 1e-6)
    one("tiny_values", (3, 8), 1e-5, scale=1e-3)  # eps is most of the variance
    one("far_from_zero", (3, 48), 1e-5, scale=1.5, shift=50.0)
    one("one_wide", (4, 1), 0.25)  # all mean: the gradient by x is 0
    one("residual", (2, 3, 17), 1e-5, residual=True)
    one("residual_wide", (3, 64), 1e-6, residual=True)


def gelus(m):
    wide = np.array([-100, -30, -9, -5, -3, -1, -0.5, 0, 0.5, 1, 3, 5, 9, 30, 80], np.float32)
    for form in ("none", "tanh"):
        for name, x in (("matrix", m.rand(5, 19)), ("plane", m.rand(2, 3, 4, 5, scale=3.0)), ("wide", wide)):
            n = f"gelu/{form}_{name}"
            _, y, dy, g = m.case(n, "gelu", {"approximate": form}, lambda x: F.gelu(x, approximate=form), {"x": x})
            m.raw(n + "/bwd", "gelu_bwd", {"approximate": form}, [(n + "/dy", dy["y"]), (n + "/x", x)], [(n + "/dx", g["x"])])
