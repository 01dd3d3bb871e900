# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""The cases of language models, for make_fixtures.py, which calls add with itself: embedding, rmsnorm, rope, attention, swiglu,
cross-entropy of a projection."""
import numpy as np
import torch
import torch.nn.functional as F


def add(m):
    for part in (embeddings, rms_norms, ropes, attentions, caches, swiglus, projections):
        part(m)


def eighths(m, *shape):
    """Values of which two can be added on the bfloat16 grid."""
    return (np.round(m.RNG.standard_normal(shape) * 8) / 8).astype(np.float32)


# ---- embedding ----------------------------------------------------------------------------------------------------------------------

def embeddings(m):
    def one(name, v, d, ids):
        n, ids = "embedding/" + name, np.array(ids, np.int32)
        _, y, dy, g = m.case(n, "embedding", {}, lambda i, w: F.embedding(i, w), {"ids": ids, "w": m.rand(v, d)})
        ins = [(n + "/dy", dy["y"]), (n + "/ids", ids)]
        m.raw(n + "/bwd", "embedding_bwd", {"rows": v, "add": False}, ins, [(n + "/dw", g["w"])])
        acc = m.rand(v, d)
        m.raw(n + "/bwd_add", "embedding_bwd", {"rows": v, "add": True}, ins + [(n + "/acc", acc)], [(n + "/dw_add", g["w"] + m.t(acc))])
    one("once", 7, 6, [3, 0, 6])
    one("repeats", 9, 17, [[1, 8, 1, 1], [8, 0, 5, 1]])
    one("all_one_row", 4, 5, [2] * 11)
    one("cube", 5, 3, [[[0, 1], [4, 4]], [[3, 3], [0, 0]]])


# ---- rmsnorm ------------------------------------------------------------------------------------------------------------------------

def rms_norms(m):
    def one(name, shape, eps, residual=False, scale=1.0):
        n, d = "rmsnorm/" + name, shape[-1]
        x = eighths(m, *shape) if residual else m.rand(*shape, scale=scale)
        ins = {"x": x, "w": m.positive(d)}
        if residual:
            ins["res"] = eighths(m, *shape)

        def f(x, w, res=None):
            s = x if res is None else x + res
            y = F.rms_norm(s, (d,), w, eps), 1 / torch.sqrt(s.square().mean(-1) + eps)
            return y if res is None else y + (s,)
        ins, y, dy, g = m.case(n, "rmsnorm", {"eps": eps, "add": residual}, f, ins, ("y", "rstd", "sum") if residual else ("y", "rstd"))
        s = (n + "/sum", y["sum"]) if residual else (n + "/x", x)
        back = [(n + "/dy", dy["y"]), s, (n + "/w", ins["w"]), (n + "/rstd", y["rstd"])]
        m.raw(n + "/bwd", "rmsnorm_bwd", {"eps": eps, "add": False}, back, [(n + "/dx", g["x"]), (n + "/dw", g["w"])])
        dres = m.rand(*shape)
        m.raw(n + "/bwd_add", "rmsnorm_bwd", {"eps": eps, "add": True}, back + [(n + "/more", dres)], [(n + "/dx_add", g["x"] + m.t(dres)),
            (n + "/dw", g["w"])])
    one("vector", (7,), 1e-5)
    one("matrix", (5, 19), 1e-5)
    one("cube", (2, 3, 32), 1e-6)
    one("tiny_values", (3, 8), 1e-5, scale=1e-3)  # eps is most of the mean square
    one("large_values", (3, 48), 1e-5, scale=300.0)
    one("one_wide", (4, 1), 0.25)  # with a small eps its gradient cancels to nothing
    one("residual", (2, 3, 17), 1e-5, residual=True)
    one("residual_wide", (3, 64), 1e-6, residual=True)


# ---- rotary positions ---------------------------------------------------------------------------------------------------------------

def frequencies(d, theta, factor=1.0, low=0.0, high=0.0, original=0):
    """The angle of each pair for one position. The scaling of Llama 3.1, seen from how many turns a pair makes in the original context: high or more, it
    stays; low or fewer, it is slowed down by factor; between them the two are mixed."""
    f = theta ** -(np.arange(0, d, 2, dtype=np.float64) / d)
    if factor <= 1:
        return f
    turns = original * f / (2 * np.pi)
    keep = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return f * (keep + (1 - keep) / factor)


def rotate(x, pos, f, adjacent):
    """Pairs are complex numbers, which are multiplied by e^(i·angle); sine and cosine are rounded to float32 as kinds.go says."""
    angle = torch.from_numpy(np.asarray(pos, np.float64)[:, :, None, None] * f)
    turn = torch.complex(torch.cos(angle).float().double(), torch.sin(angle).float().double())
    b, s, h, d = x.shape
    pairs = x.reshape(b, s, h, d // 2, 2) if adjacent else x.reshape(b, s, h, 2, d // 2).transpose(3, 4)
    y = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    return (y if adjacent else y.transpose(3, 4)).reshape(b, s, h, d)


def ropes(m):
    def one(name, shape, theta, pairs="half", pos=None, **scaling):
        n = "rope/" + name
        attrs = {"theta": theta, "pairs": pairs, "inverse": False, "pos": pos is not None, **scaling}
        f = frequencies(shape[3], theta, **scaling)
        p = np.broadcast_to(np.arange(shape[1]), shape[:2]) if pos is None else np.array(pos, np.int32)
        ins = {"x": m.rand(*shape)}
        if pos is not None:
            ins["pos"] = p
        _, y, dy, g = m.case(n, "rope", attrs, lambda x, _=None: rotate(x, p, f, pairs == "adjacent"), ins)
        m.raw(n + "/inverse", "rope", {**attrs, "inverse": True}, [(n + "/dy", dy["y"])] + ([(n + "/pos", p)] if pos is not None else []),
            [(n + "/dx", g["x"])])
    llama31 = {"factor": 8.0, "low": 1.0, "high": 4.0, "original": 8192}
    far = [[0, 1, 5, 8191, 100000], [131071, 7, 7, 7, 0]]
    for pairs in ("half", "adjacent"):
        one(pairs, (2, 5, 3, 8), 1e4, pairs)
        one(pairs + "_wide_heads", (1, 3, 2, 64), 5e5, pairs)
        one(pairs + "_positions", (2, 5, 2, 6), 1e4, pairs, far)
        one(pairs + "_llama31", (2, 5, 1, 64), 5e5, pairs, far, **llama31)
    one("two_wide", (1, 4, 2, 2), 1e4)
    one("llama32_short", (1, 9, 1, 16), 5e5, **{**llama31, "factor": 32.0, "original": 16})  # all three bands within 16 places


# ---- attention ----------------------------------------------------------------------------------------------------------------------

def attend(q, k, v, mask, scale):
    """PyTorch's own attention on [B H S D], with key heads repeated; and the log-sum-exp of the scores."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    return o.transpose(1, 2), torch.logsumexp((scale * q @ k.mT).masked_fill(~mask, -torch.inf), -1)


def attentions(m):
    def one(name, b, s, tt, h, g, d, causal, seg=None, scale=None, spread=1.0):
        n = "attention/" + name
        scale = float(d ** -0.5 if scale is None else scale)
        ins = {"q": m.rand(b, s, h, d, scale=spread), "k": m.rand(b, tt, g, d), "v": m.rand(b, tt, g, d)}
        mask = torch.ones(b, 1, s, tt, dtype=torch.bool)
        if causal:
            mask &= torch.arange(tt)[None, :] <= torch.arange(s)[:, None] + (tt - s)
        if seg is not None:
            ins["seg"] = np.array(seg, np.int32)
            z = torch.tensor(seg)
            mask &= (z[:, :, None] == z[:, None, :])[:, None]
        attrs = {"scale": scale, "causal": causal, "seg": seg is not None}
        ins, y, dy, dx = m.case(n, "attention", attrs, lambda q, k, v, seg=None: attend(q, k, v, mask, scale), ins, ("o", "lse"))
        m.raw(n + "/bwd", "attention_bwd", attrs,
              [(n + "/do", dy["o"])] + [(f"{n}/{i}", ins[i]) for i in "qkv"] + [(n + "/o", y["o"]), (n + "/lse", y["lse"])] + ([(n + "/seg",
                  ins["seg"])] if seg is not None else []),
              [(f"{n}/d{i}", dx[i]) for i in "qkv"])
    for causal in (False, True):
        c = "causal" if causal else "full"
        one("heads_" + c, 2, 5, 5, 3, 3, 8, causal)
        one("grouped_" + c, 2, 6, 6, 6, 2, 4, causal)
        one("one_key_head_" + c, 1, 7, 7, 4, 1, 5, causal)
        one("fewer_queries_" + c, 2, 3, 8, 2, 1, 6, causal)
        one("long_" + c, 1, 67, 67, 2, 1, 16, causal)
    one("more_queries_full", 1, 6, 4, 2, 2, 4, False)
    one("segments_causal", 2, 6, 6, 4, 2, 4, True, [[0, 0, 1, 1, 1, 2], [5, 5, 5, 5, 5, 5]])
    one("segments_full", 2, 6, 6, 2, 2, 4, False, [[0, 0, 1, 1, 1, 2], [3, 4, 3, 4, -1, 3]])
    one("segments_long", 1, 70, 70, 2, 1, 8, True, [[0] * 33 + [1] * 31 + [2] * 6])
    one("wide_heads", 1, 4, 4, 2, 1, 64, True)
    one("large_scores", 1, 5, 5, 2, 1, 8, True, spread=30.0)
    one("own_scale", 1, 4, 4, 2, 2, 4, True, scale=0.125)
    one("one_token", 2, 1, 1, 2, 1, 4, True)

    def cached(name, s, tt, h, g, d, pos):
        n, b, scale = "attention_cached/" + name, len(pos), float(d ** -0.5)
        mask = (torch.arange(tt)[None, None, :] <= torch.tensor(pos)[:, :, None])[:, None]
        m.case(n, "attention_cached", {"scale": scale}, lambda q, k, v, p: attend(q, k, v, mask, scale)[0],
               {"q": m.rand(b, s, h, d), "k": m.rand(b, tt, g, d), "v": m.rand(b, tt, g, d), "pos": np.array(pos, np.int32)}, ("o",), diff=[])
    cached("one_token", 1, 9, 4, 2, 8, [[0], [8], [4]])
    cached("prompt", 5, 8, 2, 2, 4, [[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]])
    cached("one_key_head", 2, 40, 8, 1, 16, [[38, 39], [0, 1]])
    cached("any_order", 3, 6, 2, 1, 6, [[5, 0, 3]])


def caches(m):
    def one(name, tt, g, d, pos):
        n, b, s = "cache_write/" + name, len(pos), len(pos[0])
        cache, x = m.rand(b, tt, g, d), m.rand(b, s, g, d)
        want = torch.from_numpy(cache).clone()
        for i, row in enumerate(pos):
            at = torch.tensor([p for p in row if p >= 0], dtype=torch.long)
            new = torch.from_numpy(x[i])[[j for j, p in enumerate(row) if p >= 0]]
            want[i] = want[i].index_copy(0, at, new)
        m.raw(n, "cache_write", {}, [(n + "/cache", cache), (n + "/x", x), (n + "/pos", np.array(pos, np.int32))], [(n + "/cache_new", want.numpy())])
    one("one_token", 6, 2, 5, [[0], [5], [3]])
    one("prompt", 7, 2, 4, [[0, 1, 2, 3], [3, 4, 5, 6]])
    one("negative", 5, 1, 8, [[-1, 2, -7], [-1, -1, -1]])
    one("any_order", 4, 3, 2, [[3, 0, 2]])


# ---- swiglu and the loss ------------------------------------------------------------------------------------------------------------

def swiglus(m):
    def one(name, gate, up):
        n = "swiglu/" + name
        ins, y, dy, g = m.case(n, "swiglu", {}, lambda gate, up: F.silu(gate) * up, {"gate": gate, "up": up})
        m.raw(n + "/bwd", "swiglu_bwd", {}, [(n + "/dy", dy["y"]), (n + "/gate", gate), (n + "/up", up)], [(n + "/dgate", g["gate"]), (n + "/dup", g["up"])])
    one("matrix", m.rand(5, 19), m.rand(5, 19))
    one("cube", m.rand(2, 3, 16, scale=3.0), m.rand(2, 3, 16))
    one("wide", np.array([-100, -30, -5, -0.5, 0, 0.5, 5, 30, 80], np.float32), m.rand(9))  # saturation without overflow


def projections(m):
    def one(name, n, d, v, labels, ignore=-100, dloss=1.0, spread=1.0):
        c, labels = "linear_cross_entropy/" + name, np.array(labels, np.int32)
        valid = float((labels != ignore).sum())

        def f(x, w, y):
            z = F.linear(x, w)
            return F.cross_entropy(z, y, reduction="sum", ignore_index=ignore), torch.tensor(valid), torch.logsumexp(z, 1)
        attrs = {"ignore_index": ignore}
        ins, y, dy, g = m.case(c, "linear_cross_entropy", attrs, f, {"x": m.rand(n, d), "w": m.rand(v, d, scale=spread), "labels": labels}, ("loss",
            "count", "lse"),
                               dout={"loss": np.float32(dloss)})
        three, dl = [(f"{c}/{k}", ins[k]) for k in ("x", "w", "labels")], (c + "/dloss", np.float32(dloss))
        grads = [(c + "/dx", g["x"]), (c + "/dw", g["w"])]
        m.raw(c + "/bwd", "linear_cross_entropy_bwd", attrs, three + [(c + "/lse", y["lse"]), dl], grads)
        m.raw(c + "/grad", "linear_cross_entropy_grad", attrs, three + [dl], [(f"{c}/{k}", y[k]) for k in ("loss", "count", "lse")] + grads)
    one("plain", 5, 7, 11, [0, 10, 3, 3, 7])
    one("ignore", 6, 8, 9, [-100, 8, -100, 0, 4, -100], dloss=0.25)
    one("ignore_2", 5, 6, 4, [2, 0, 3, 2, 1], ignore=2, dloss=0.5)
    one("all_ignored", 3, 4, 5, [-100, -100, -100])
    one("one_row", 1, 16, 33, [32], dloss=0.125)
    one("one_class", 3, 5, 1, [0, 0, 0])
    one("large_logits", 4, 8, 12, [0, 11, 5, 5], spread=12.0)
    one("many", 70, 20, 131, [-100 if i % 9 == 4 else i * 37 % 131 for i in range(70)], dloss=1 / 64)
