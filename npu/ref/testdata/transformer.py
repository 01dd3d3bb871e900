# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""The cases of vision transformers, for make_fixtures.py, which calls add and masks with itself: layernorm, gelu,
attention with masks."""
import numpy as np
import torch
import torch.nn.functional as F

from language import attend, eighths


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


def masks(m):
    """PyTorch's boolean attn_mask, of which every row sees the first key, for PyTorch gives NaN to one that sees none."""
    def one(name, b, s, t, h, g, d, causal=False, keys=None, mask=None):
        n, scale = "attention/" + name, float(d ** -0.5)
        ins = {"q": m.rand(b, s, h, d), "k": m.rand(b, t, g, d), "v": m.rand(b, t, g, d)}
        see = torch.ones(b, 1, s, t, dtype=torch.bool)
        if causal:
            see = see & (torch.arange(t)[None, :] <= torch.arange(s)[:, None] + (t - s))
        if keys is not None:
            ins["keys"] = np.array(keys, np.int32)
            see = see & (torch.tensor(keys) != 0)[:, None, None, :]
        if mask is not None:
            ins["mask"] = (m.RNG.random((*mask, s, t)) < 0.6).astype(np.int32)
            ins["mask"][..., 0] = 1
            see = see & (torch.from_numpy(ins["mask"]) != 0)
        attrs = {"scale": scale, "causal": causal, "seg": False, "keys": keys is not None, "mask": mask is not None}
        ins, y, dy, dx = m.case(n, "attention", attrs, lambda q, k, v, *_: attend(q, k, v, see, scale), ins, ("o", "lse"))
        m.raw(n + "/bwd", "attention_bwd", attrs,
              [(n + "/do", dy["o"])] + [(f"{n}/{i}", ins[i]) for i in "qkv"] + [(n + "/o", y["o"]), (n + "/lse", y["lse"])] +
              [(f"{n}/{i}", ins[i]) for i in ("keys", "mask") if i in ins], [(f"{n}/d{i}", dx[i]) for i in "qkv"])
    one("keys", 2, 5, 6, 2, 1, 8, keys=[[1, 1, 1, 1, 0, 0], [2, 0, 1, 0, -1, 0]])
    one("keys_causal", 2, 4, 4, 2, 2, 4, causal=True, keys=[[1, 1, 1, 0], [1, 0, 1, 1]])
    one("mask_for_all", 2, 5, 7, 2, 2, 4, mask=(1, 1))
    one("mask_by_sequence", 2, 3, 6, 4, 2, 4, mask=(2, 1))
    one("mask_by_head", 2, 4, 4, 2, 1, 6, causal=True, mask=(1, 2))
    one("keys_and_mask", 2, 6, 5, 2, 2, 8, keys=[[1, 1, 1, 0, 1], [1, 1, 0, 0, 0]], mask=(2, 2))
