#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""Write reference values for every op kind of npu/kinds.go: ops.safetensors and ops.json.

    python3 make_fixtures.py [FOLDER]        # needs torch and numpy

PyTorch computes in float64 from float32 inputs; results are rounded once, to float32. Inputs of ops that may run in bfloat16 are chosen
on the bfloat16 grid, so that the same numbers test a bfloat16 kernel. Where PyTorch has no such op (dropout with our counter-based mask,
topk counting, LARS, LAMB, sums of squares) the formula of kinds.go is written out in numpy. The cases of language models are in language.py, those of
vision transformers in transformer.py. README.md beside this file describes the format.
"""
import json, os, struct, sys

import numpy as np
import torch
import torch.nn.functional as F

import language
import transformer
import losses

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
RNG = np.random.default_rng(20260101)
TENSORS, CASES = {}, []


# ---- inputs -------------------------------------------------------------------------------------------------------------------------

def bf16_grid(a):
    """Round to the nearest bfloat16 (ties to even), kept as float32."""
    b = np.ascontiguousarray(a, np.float32).view(np.uint32).astype(np.uint64)
    b = (b + 0x7FFF + ((b >> 16) & 1)) & 0xFFFF0000
    return b.astype(np.uint32).view(np.float32).reshape(np.shape(a))


def rand(*shape, scale=1.0, shift=0.0):
    return bf16_grid(RNG.standard_normal(shape) * scale + shift)


def positive(*shape):
    return bf16_grid(RNG.uniform(0.25, 3.0, shape))


def distinct(*shape):
    """No two equal values and no zero, so that a maximum has one place and its gradient one meaning."""
    n = int(np.prod(shape))
    return (RNG.permutation(n).astype(np.float32) - n / 2 + 0.5).reshape(shape) / 8


# ---- the store ----------------------------------------------------------------------------------------------------------------------

def put(name, value):
    if value is None:
        return ""
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    value = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
    if value.dtype == np.float64 and not name.endswith(".f64"):
        value = value.astype(np.float32)
    if name in TENSORS and not np.array_equal(TENSORS[name], value, equal_nan=value.dtype.kind == "f"):
        raise SystemExit(f"two different tensors are called {name}")
    TENSORS[name] = value
    return name


def t(a, grad=False):
    a = torch.from_numpy(np.asarray(a))
    return a.to(torch.float64).requires_grad_(grad) if a.dtype.is_floating_point else a.long()


def raw(name, kind, attrs, ins, outs, **more):
    """A case from ready arrays: ins and outs are lists of (tensor name, array or None)."""
    c = {"name": name, "kind": kind, "attrs": attrs, "in": [put(n, v) for n, v in ins], "out": [put(n, v) for n, v in outs]}
    c.update(more)
    CASES.append(c)


def case(name, kind, attrs, fn, ins, outs=("y",), diff=None, dout=None):
    """A forward case computed by fn(*float64 tensors) -> tensor or tuple, with its vector-Jacobian product.

    ins: dict name -> array. diff: names of the inputs to differentiate by (default: every float one). dout: {out: array}, default random
    for the first output. The tensors are called CASE/NAME. Returns (inputs, outputs, douts, dins) as arrays by name for backward cases.
    """
    args = {k: None if v is None else t(v, diff is None and np.asarray(v).dtype.kind == "f" or diff is not None and k in diff) for k, v in ins.items()}
    ys = fn(*args.values())
    ys = ys if isinstance(ys, tuple) else (ys,)
    y = dict(zip(outs, ys))
    c = {"name": name, "kind": kind, "attrs": attrs,
         "in": [put(f"{name}/{k}", v) for k, v in ins.items()], "out": [put(f"{name}/{k}", v) for k, v in y.items()]}
    dins = {}
    wrt = [k for k, v in args.items() if v is not None and v.requires_grad]
    if wrt:
        if dout is None:
            dout = {outs[0]: rand(*ys[0].shape)}
        loss = sum((y[k] * t(v)).sum() for k, v in dout.items())
        for k, g in zip(wrt, torch.autograd.grad(loss, [args[k] for k in wrt], allow_unused=True)):
            dins[k] = torch.zeros_like(args[k]) if g is None else g
        c["dout"] = [put(f"{name}/d{k}", dout[k]) if k in dout else "" for k in outs]
        c["din"] = [put(f"{name}/d{k}", dins[k]) if k in dins else "" for k in ins]
    CASES.append(c)
    return ins, y, dout or {}, dins


# ---- convolution --------------------------------------------------------------------------------------------------------------------

def conv(name, x, o, k, stride=(1, 1), pad=(0, 0, 0, 0), dil=(1, 1), groups=1, bias=False, relu=False):
    n, c, h, w = x
    attrs = {"stride": list(stride), "pad": list(pad), "dilation": list(dil), "groups": groups, "bias": bias, "relu": relu}
    ins = {"x": rand(*x), "w": rand(o, c // groups, *k, scale=0.5)}
    if bias:
        ins["b"] = rand(o)

    def f(x, w, b=None):
        top, left, bottom, right = pad
        y = F.conv2d(F.pad(x, (left, right, top, bottom)), w, b, stride, 0, dil, groups)
        return F.relu(y) if relu else y
    name = "conv2d/" + name
    ins, y, dy, d = case(name, "conv2d", attrs, f, ins)
    if relu:
        return
    raw(name + "/bwd_data", "conv2d_bwd_data", {**attrs, "x_shape": list(x)},
        [(name + "/dy", dy["y"]), (name + "/w", ins["w"])], [(name + "/dx", d["x"])])
    raw(name + "/bwd_weights", "conv2d_bwd_weights", {**attrs, "w_shape": list(ins["w"].shape)},
        [(name + "/x", ins["x"]), (name + "/dy", dy["y"])], [(name + "/dw", d["w"])] + ([(name + "/db", d["b"])] if bias else []))


def all_convs():
    conv("3x3_pad1_bias", (2, 3, 7, 6), 4, (3, 3), pad=(1, 1, 1, 1), bias=True)
    conv("3x3_stride2", (2, 4, 8, 7), 5, (3, 3), stride=(2, 2), pad=(1, 1, 1, 1))
    conv("stem_7x7_stride2", (1, 3, 13, 12), 8, (7, 7), stride=(2, 2), pad=(3, 3, 3, 3))
    conv("1x1", (2, 5, 4, 5), 6, (1, 1))
    conv("1x1_stride2", (2, 8, 6, 5), 4, (1, 1), stride=(2, 2))
    conv("dilation2", (1, 3, 9, 8), 4, (3, 3), pad=(2, 2, 2, 2), dil=(2, 2))
    conv("dilation_1x3_uneven", (1, 2, 6, 11), 3, (3, 3), stride=(1, 2), pad=(1, 0, 1, 0), dil=(1, 3), bias=True)
    conv("groups2", (2, 4, 5, 5), 6, (3, 3), pad=(1, 1, 1, 1), groups=2, bias=True)
    conv("depthwise", (1, 6, 6, 6), 6, (3, 3), stride=(2, 2), pad=(1, 1, 1, 1), groups=6)
    conv("asymmetric_pad", (1, 3, 6, 6), 4, (3, 2), stride=(2, 1), pad=(0, 1, 1, 0), bias=True)
    conv("16_to_16", (1, 16, 4, 5), 16, (3, 3), pad=(1, 1, 1, 1))
    conv("17_to_19", (1, 17, 3, 3), 19, (1, 1), bias=True)
    conv("whole_plane", (3, 2, 4, 4), 3, (4, 4), bias=True)
    conv("relu_bias", (2, 3, 5, 5), 4, (3, 3), pad=(1, 1, 1, 1), bias=True, relu=True)


# ---- matmul -------------------------------------------------------------------------------------------------------------------------

def matmul(name, lead, m, k, n, ta=False, tb=False, bias=False):
    a = rand(*lead, *((k, m) if ta else (m, k)))
    b = rand(*lead, *((n, k) if tb else (k, n)))
    ins = {"a": a, "b": b}
    if bias:
        ins["bias"] = rand(n)

    def f(a, b, bias=None):
        y = (a.mT if ta else a) @ (b.mT if tb else b)
        return y if bias is None else y + bias
    case("matmul/" + name, "matmul", {"ta": ta, "tb": tb, "bias": bias}, f, ins)


def all_matmuls():
    for ta in (False, True):
        for tb in (False, True):
            matmul(f"{'t' if ta else 'n'}{'t' if tb else 'n'}", (), 5, 7, 6, ta, tb)
            matmul(f"{'t' if ta else 'n'}{'t' if tb else 'n'}_batch2x3", (2, 3), 3, 4, 5, ta, tb)
    matmul("linear_bias", (), 4, 19, 10, tb=True, bias=True)
    matmul("batch_bias", (2,), 3, 5, 4, bias=True)
    matmul("one_row", (), 1, 9, 3, tb=True)
    matmul("one_column_one_inner", (), 6, 1, 1)


# ---- normalisation ------------------------------------------------------------------------------------------------------------------

def bn(name, x, eps, momentum, relu=False, add=False, offset=0.0):
    c = x[1]
    ins = {"x": rand(*x, scale=1.5, shift=offset), "gamma": positive(c), "beta": rand(c), "run_mean": rand(c), "run_var": positive(c)}
    if add:
        ins["res"] = rand(*x)
    out = {}

    def f(x, g, b, rm, rv, res=None):
        dims = [0] + list(range(2, x.dim()))
        rm, rv = rm.clone(), rv.clone()
        y = F.batch_norm(x, rm, rv, g, b, True, momentum, eps)
        if res is not None:
            y = y + res
        var = x.var(dims, unbiased=False)
        out.update(rstd=1 / torch.sqrt(var + eps))
        return F.relu(y) if relu else y, x.mean(dims), out["rstd"], rm, rv
    name = "batchnorm/" + name
    diff = ["x", "gamma", "beta"] + (["res"] if add else [])
    ins, y, dy, d = case(name, "batchnorm", {"eps": eps, "momentum": momentum, "relu": relu, "add": add}, f, ins,
                         ("y", "mean", "rstd", "run_mean_new", "run_var_new"), diff)
    # The backward kind, alone and with the gradient arriving as a sum of two parts.
    dy2 = rand(*x)
    for sum_ in (False, True):
        a = {k: t(v, k in diff) for k, v in ins.items()}
        g = t(dy["y"]) + (t(dy2) if sum_ else 0)
        grads = dict(zip(diff, torch.autograd.grad((f(*a.values())[0] * g).sum(), [a[k] for k in diff])))
        s = "_sum" if sum_ else ""
        raw(name + "/bwd" + s, "batchnorm_bwd", {"eps": eps, "relu": relu, "add": add, "sum": sum_},
            [(name + "/dy", dy["y"]), (name + "/x", ins["x"]), (name + "/gamma", ins["gamma"]), (name + "/beta", ins["beta"]),
             (name + "/mean", y["mean"]), (name + "/rstd", y["rstd"])] + ([(name + "/y", y["y"])] if relu else []) + ([(name + "/dy2", dy2)] if sum_ else []),
            [(f"{name}/d{k}{s}", grads[k]) for k in diff])


def bn_infer(name, x, eps, relu=False, add=False):
    c = x[1]
    ins = {"x": rand(*x), "gamma": positive(c), "beta": rand(c), "mean": rand(c), "var": positive(c)}
    if add:
        ins["res"] = rand(*x)

    def f(x, g, b, m, v, res=None):
        y = F.batch_norm(x, m, v, g, b, False, 0.0, eps)
        y = y if res is None else y + res
        return F.relu(y) if relu else y
    case("batchnorm_infer/" + name, "batchnorm_infer", {"eps": eps, "relu": relu, "add": add}, f, ins,
         diff=["x", "gamma", "beta"] + (["res"] if add else []))


def all_norms():
    bn("plain", (3, 4, 3, 2), 1e-5, 0.1)
    bn("relu", (2, 5, 3, 3), 1e-5, 0.1, relu=True)
    bn("add", (2, 3, 4, 3), 1e-3, 0.01, add=True)
    bn("add_relu", (2, 17, 2, 3), 1e-5, 0.1, relu=True, add=True)
    bn("vector", (6, 5), 1e-5, 0.25)
    bn("far_from_zero", (4, 2, 3, 3), 1e-5, 0.1, offset=50.0)  # E[x^2] - E[x]^2 in float32 would lose digits here
    bn_infer("plain", (2, 4, 3, 2), 1e-5)
    bn_infer("add_relu", (2, 3, 2, 2), 1e-3, relu=True, add=True)
    bn_infer("vector_relu", (3, 5), 1e-5, relu=True)


# ---- element-wise, broadcasting, reductions -----------------------------------------------------------------------------------------

UNARY = {
    "neg": torch.neg, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "square": torch.square, "abs": torch.abs,
    "recip": torch.reciprocal, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "silu": F.silu, "gelu": lambda x: F.gelu(x, approximate="tanh"),
        "sign": torch.sign,
}
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "max": torch.maximum, "min": torch.minimum,
    "gt": lambda a, b: (a > b).double(), "ge": lambda a, b: (a >= b).double(), "eq": lambda a, b: (a == b).double(),
}


def unary(fn, what, x):
    """A function of the kind unary; gelu is a kind by itself."""
    if fn == "gelu":
        case("gelu/small" + what, "gelu", {"approximate": "tanh"}, UNARY[fn], {"x": x})
    else:
        case("unary/" + fn + what, "unary", {"fn": fn}, UNARY[fn], {"x": x})


def all_elementwise():
    _, y, dy, d = case("relu/plain", "relu", {}, F.relu, {"x": rand(3, 5, 4)})
    raw("relu/plain/bwd", "relu_bwd", {}, [("relu/plain/dy", dy["y"]), ("relu/plain/y", y["y"])], [("relu/plain/dx", d["x"])])
    for fn in UNARY:
        x = positive(3, 7) if fn in ("log", "sqrt", "rsqrt") else rand(3, 7, scale=2.0)
        x = np.where(x == 0, np.float32(1), x)
        unary(fn, "", x)
    case("unary/affine", "unary", {"fn": "affine", "alpha": -1.5, "beta": 0.25}, lambda x: -1.5 * x + 0.25, {"x": rand(3, 7)})
    wide = np.array([-100, -30, -5, -0.5, 0, 0.5, 5, 30, 80], np.float32)  # saturation without overflow
    for fn in ("tanh", "sigmoid", "silu", "gelu"):
        unary(fn, "_wide", wide)

    def binary(name, fn, a, b, relu=False):
        comparing = fn in ("gt", "ge", "eq")
        case("binary/" + name, "binary", {"fn": fn, "relu": relu},
             lambda a, b: F.relu(BINARY[fn](a, b)) if relu else BINARY[fn](a, b), {"a": a, "b": b}, diff=[] if comparing else None)
    for fn in BINARY:
        a, b = distinct(2, 3, 4), distinct(2, 3, 4)
        if fn in ("max", "min"):
            b = b + np.float32(0.0625)  # off a's grid: never equal
        if fn in ("ge", "eq"):
            b = np.where(RNG.random(b.shape) < 0.5, a, b)
        if fn == "div":
            b = positive(2, 3, 4)
        binary(fn, fn, a, b)
    for fn in ("add", "sub", "mul", "div"):
        b = positive if fn == "div" else rand
        binary(fn + "_row", fn, rand(2, 3, 4), b(4))
        binary(fn + "_channel", fn, rand(2, 3, 2, 2), b(1, 3, 1, 1))
        binary(fn + "_scalar", fn, rand(2, 3), b())
        binary(fn + "_both", fn, rand(3, 1, 4), b(2, 1))
        binary(fn + "_left_smaller", fn, rand(4), b(2, 3, 4))
    binary("add_relu", "add", rand(2, 3, 4), rand(2, 3, 4), relu=True)
    for name, x, shape in (("row", (4,), [3, 4]), ("channel", (1, 3, 1, 1), [2, 3, 2, 2]), ("scalar", (), [2, 3]), ("same", (2, 3), [2, 3])):
        case("broadcast_to/" + name, "broadcast_to", {"shape": shape}, lambda x: x.broadcast_to(shape), {"x": rand(*x)})
    red = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax}
    for fn, f in red.items():
        for axes in ([0], [1], [2], [0, 2], [1, 2], [0, 1, 2]):
            for keep in (False, True):
                n = f"reduce/{fn}_{''.join(map(str, axes))}{'_keep' if keep else ''}"
                case(n, "reduce", {"fn": fn, "axes": axes, "keep": keep}, lambda x: f(x, dim=axes, keepdim=keep), {"x": distinct(2, 5, 3)})
        case(f"reduce/{fn}_nchw", "reduce", {"fn": fn, "axes": [0, 2, 3], "keep": False}, lambda x: f(x, dim=[0, 2, 3]), {"x": distinct(2, 3, 2, 3)})


# ---- pooling ------------------------------------------------------------------------------------------------------------------------

def maxpool(name, x, k, s, pad=(0, 0, 0, 0), dil=(1, 1)):
    attrs = {"kernel": list(k), "stride": list(s), "pad": list(pad), "dilation": list(dil)}
    top, left, bottom, right = pad
    wp = x[3] + left + right
    keep = {}

    def f(x):
        y, i = F.max_pool2d(F.pad(x, (left, right, top, bottom), value=-torch.inf), k, s, 0, dil, return_indices=True)
        keep["idx"] = ((i // wp - top) * x.shape[3] + i % wp - left).numpy().astype(np.int32)
        return y
    name = "maxpool/" + name
    _, y, dy, d = case(name, "maxpool", attrs, f, {"x": distinct(*x) - 40})  # all negative: a zero of the padding would win
    CASES[-1]["out"].append(put(name + "/idx", keep["idx"]))
    CASES[-1]["dout"].append("")
    raw(name + "/bwd", "maxpool_bwd", {**attrs, "x_shape": list(x)}, [(name + "/dy", dy["y"]), (name + "/idx", keep["idx"])], [(name + "/dx", d["x"])])


def avgpool(name, x, k, s, pad=(0, 0), include_pad=False):
    attrs = {"kernel": list(k), "stride": list(s), "pad": [pad[0], pad[1], pad[0], pad[1]], "include_pad": include_pad}
    name = "avgpool/" + name
    _, y, dy, d = case(name, "avgpool", attrs, lambda x: F.avg_pool2d(x, k, s, pad, count_include_pad=include_pad), {"x": rand(*x)})
    raw(name + "/bwd", "avgpool_bwd", {**attrs, "x_shape": list(x)}, [(name + "/dy", dy["y"])], [(name + "/dx", d["x"])])


def all_pools():
    maxpool("stem_3x3_s2_p1", (2, 3, 8, 7), (3, 3), (2, 2), (1, 1, 1, 1))
    maxpool("2x2", (1, 4, 6, 4), (2, 2), (2, 2))
    maxpool("overlapping", (1, 2, 5, 6), (3, 2), (1, 1))
    maxpool("dilation2", (1, 2, 8, 9), (3, 3), (2, 1), (1, 1, 1, 1), (2, 2))
    maxpool("asymmetric_pad", (1, 3, 5, 5), (3, 3), (2, 2), (0, 1, 1, 0))
    for inc in (False, True):
        s = "_include_pad" if inc else ""
        avgpool("3x3_s2_p1" + s, (2, 3, 8, 7), (3, 3), (2, 2), (1, 1), inc)
        avgpool("3x2_s1" + s, (1, 2, 5, 6), (3, 2), (1, 2), (1, 0), inc)
    avgpool("2x2", (1, 4, 6, 4), (2, 2), (2, 2))
    for name, x in (("7x7", (2, 5, 7, 7)), ("3x2", (3, 4, 3, 2)), ("1x1", (2, 3, 1, 1))):
        n = "gap/" + name
        _, y, dy, d = case(n, "gap", {}, lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), {"x": rand(*x)})
        raw(n + "/bwd", "gap_bwd", {"x_shape": list(x)}, [(n + "/dy", dy["y"])], [(n + "/dx", d["x"])])


# ---- softmax and losses -------------------------------------------------------------------------------------------------------------

def cross_entropy(name, logits, labels, smoothing=0.0, ignore=-100, dloss=1.0):
    labels = np.array(labels, np.int32)
    attrs = {"smoothing": smoothing, "ignore_index": ignore}
    valid = np.float32((labels != ignore).sum())

    def f(z, y):
        return F.cross_entropy(z, y, reduction="sum", label_smoothing=smoothing, ignore_index=ignore), torch.tensor(float(valid)), torch.logsumexp(z, 1)
    n = "cross_entropy/" + name
    ins, y, dy, d = case(n, "cross_entropy", attrs, f, {"logits": logits, "labels": labels}, ("loss", "count", "lse"), dout={"loss": np.float32(dloss)})
    raw(n + "/bwd", "cross_entropy_bwd", attrs, [(n + "/logits", logits), (n + "/labels", labels), (n + "/lse", y["lse"]), (n + "/dloss", np.float32(dloss))],
        [(n + "/dlogits", d["logits"])])


def topk(name, logits, labels, k, ignore=-100):
    correct = 0
    for row, y in zip(logits, labels):
        if y != ignore:
            correct += y in sorted(range(len(row)), key=lambda i: (-row[i], i))[:k]
    n = "topk/" + name
    raw(n, "topk", {"k": k, "ignore_index": ignore}, [(n + "/logits", logits), (n + "/labels", np.array(labels, np.int32))], [(n + "/correct",
        np.float32(correct))])


def all_losses():
    for kind, f in (("softmax", F.softmax), ("log_softmax", F.log_softmax)):
        for name, x in (("matrix", rand(4, 7, scale=2.0)), ("cube", rand(2, 3, 5)), ("one_class", rand(3, 1)), ("wide", rand(2, 33, scale=30.0))):
            n = f"{kind}/{name}"
            _, y, dy, d = case(n, kind, {}, lambda x: f(x, -1), {"x": x})
            raw(n + "/bwd", kind + "_bwd", {}, [(n + "/dy", dy["y"]), (n + "/y", y["y"])], [(n + "/dx", d["x"])])
    cross_entropy("plain", rand(5, 7), [0, 6, 3, 3, 1])
    cross_entropy("smoothing", rand(5, 7), [0, 6, 3, 2, 1], smoothing=0.1, dloss=0.25)
    cross_entropy("ignore", rand(5, 7), [0, -100, 3, -100, 1])
    cross_entropy("ignore_2_smoothing", rand(6, 4), [2, 0, 3, 2, 1, 1], smoothing=0.2, ignore=2, dloss=0.5)
    cross_entropy("all_ignored", rand(3, 4), [-100, -100, -100], smoothing=0.1)
    cross_entropy("wide_range", rand(4, 9, scale=60.0), [0, 8, 4, 4], smoothing=0.1)
    cross_entropy("two_classes", rand(4, 2), [0, 1, 1, 0], dloss=0.125)
    z = rand(8, 10)
    topk("top1", z, [int(i) for i in z.argmax(1)[:4]] + [0, 1, 2, 3], 1)
    topk("top5", z, [9, 8, 7, 6, 5, 4, 3, 2], 5)
    topk("ties_lower_index_first", np.ones((4, 6), np.float32), [0, 1, 2, 5], 2)
    topk("ignore", z, [-100, 8, 7, -100, 5, 4, 3, 2], 3)


# ---- moving data --------------------------------------------------------------------------------------------------------------------

def splitmix_mask(n, seed, layer, p):
    """The mask of kinds.go: a counter-based splitmix64, so that any element can be made alone."""
    m, out = (1 << 64) - 1, np.empty(n, bool)
    for i in range(n):
        z = (seed & m) ^ ((layer + 1) * 0xD1342543DE82EF95 & m)
        z = (z + (i + 1) * 0x9E3779B97F4A7C15) & m
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & m
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & m
        z ^= z >> 31
        out[i] = (z >> 40) * 2.0 ** -24 >= p
    return out


def all_moves():
    for perm in ([1, 0], [0, 2, 1], [2, 0, 1], [0, 2, 3, 1], [0, 3, 1, 2]):
        case("transpose/" + "".join(map(str, perm)), "transpose", {"perm": perm}, lambda x: x.permute(perm), {"x": rand(*(2, 3, 4, 5)[:len(perm)])})
    case("concat/axis0", "concat", {"axis": 0}, lambda *x: torch.cat(x, 0), {"x0": rand(2, 3), "x1": rand(1, 3), "x2": rand(3, 3)})
    case("concat/channels", "concat", {"axis": 1}, lambda *x: torch.cat(x, 1), {"x0": rand(2, 3, 2, 2), "x1": rand(2, 5, 2, 2)})
    case("concat/last", "concat", {"axis": 2}, lambda *x: torch.cat(x, 2), {"x0": rand(2, 1, 3), "x1": rand(2, 1, 4), "x2": rand(2, 1, 1)})
    case("slice/rows", "slice", {"begin": [1, 0], "end": [3, 4]}, lambda x: x[1:3], {"x": rand(5, 4)})
    case("slice/middle", "slice", {"begin": [0, 1, 2], "end": [2, 3, 5]}, lambda x: x[:, 1:3, 2:5], {"x": rand(2, 4, 6)})
    case("pad/matrix", "pad", {"before": [1, 0], "after": [0, 2]}, lambda x: F.pad(x, (0, 2, 1, 0)), {"x": rand(2, 3)})
    case("pad/plane", "pad", {"before": [0, 0, 1, 2], "after": [0, 0, 2, 0]}, lambda x: F.pad(x, (2, 0, 1, 2)), {"x": rand(1, 2, 2, 3)})
    case("reshape/flatten", "reshape", {"shape": [2, 12]}, lambda x: x.reshape(2, 12), {"x": rand(2, 3, 2, 2)})
    raw("fill/value", "fill", {"value": 0.75}, [], [("fill/value/y", np.full((2, 3), 0.75, np.float32))])
    # Rounding to nearest even: exact ties up and down, overflow to infinity, subnormals, signed zero.
    x = np.array([0x3F800000, 0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0xBF818000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
                  0x00000001, 0x00008000, 0x00018000, 0x80000000, 0x00000000, 0x40490FDB, 0x42280000], np.uint32).view(np.float32)
    b = torch.from_numpy(x).to(torch.bfloat16)
    bits = b.view(torch.int16).numpy().astype(np.uint16)
    raw("convert/f32_to_bf16", "convert", {}, [("convert/f32_to_bf16/x", x)], [("convert/f32_to_bf16/y", bits)])
    raw("convert/bf16_to_f32", "convert", {}, [("convert/f32_to_bf16/y", bits)], [("convert/bf16_to_f32/y", b.float().numpy())])
    for name, shape, seed, layer, p in (("half", (4, 33), 1234567, 0, 0.5), ("tenth_layer3", (2, 3, 11), -9876543210123, 3, 0.1), ("none", (7,), 5, 1, 0.0)):
        x = rand(*shape)
        y = np.where(splitmix_mask(x.size, seed, layer, p).reshape(shape), x.astype(np.float64) / (1 - p), 0.0)
        n = "dropout/" + name
        raw(n, "dropout", {"p": p, "id": layer}, [(n + "/x", x), (n + "/seed", np.array(seed, np.int64))], [(n + "/y", y)])


# ---- flat memory: optimizer kernels -------------------------------------------------------------------------------------------------

def f64(a):
    return a.astype(np.float64)


def all_flat():
    n = 19  # not a multiple of a vector
    w, g = rand(n), rand(n)
    m, v = rand(n, scale=0.5), positive(n)

    def hyper(*h):
        return np.array(list(h) + [0.0] * (8 - len(h)), np.float32)

    def sgd(name, h, has_m=True, nesterov=False, decoupled=False):
        lr, gs, mu, wd, damp, first = f64(h)[:6]
        W, G, M = f64(w), f64(g) * gs, f64(m)
        if decoupled:
            W = W - lr * wd * W
        else:
            G = G + wd * W
        M = G if first else mu * M + (1 - damp) * G
        d = (G + mu * M if nesterov else M) if has_m else G
        s = "sgd/" + name
        raw(s, "sgd", {"nesterov": nesterov, "decoupled": decoupled, "has_momentum": has_m},
            [(s + "/hyper", h), ("flat/w", w), ("flat/g", g)] + ([("flat/m", m)] if has_m else []),
            [(s + "/w", W - lr * d)] + ([(s + "/m", M)] if has_m else []))
    sgd("plain", hyper(0.125, 1), has_m=False)
    sgd("plain_decay", hyper(0.125, 0.5, 0, 0.01), has_m=False)
    sgd("momentum_first", hyper(0.1, 1, 0.9, 1e-4, 0.1, 1))
    sgd("momentum", hyper(0.1, 0.25, 0.9, 1e-4, 0.1, 0))
    sgd("nesterov", hyper(0.1, 1, 0.9, 1e-4, 0, 0), nesterov=True)
    sgd("nesterov_first", hyper(0.1, 1, 0.9, 1e-4, 0, 1), nesterov=True)
    sgd("decoupled", hyper(0.1, 1, 0.9, 0.05, 0, 0), decoupled=True)

    for name, coupled, step, gs in (("decoupled_step1", False, 1, 1.0), ("decoupled_step7", False, 7, 0.5), ("coupled_step3", True, 3, 1.0)):
        h = hyper(1e-2, gs, 0.9, 0.999, 1e-8, 0.05, 1 - 0.9 ** step, 1 - 0.999 ** step, step)
        lr, gs_, b1, b2, eps, wd, bc1, bc2, _ = f64(h)
        W, G = f64(w), f64(g) * gs_
        if coupled:
            G = G + wd * W
        else:
            W = W - lr * wd * W
        M, V = b1 * f64(m) + (1 - b1) * G, b2 * f64(v) + (1 - b2) * G * G
        s = "adamw/" + name
        raw(s, "adamw", {"coupled": coupled}, [(s + "/hyper", h), ("flat/w", w), ("flat/g", g), ("flat/m", m), ("flat/v", v)],
            [(s + "/w", W - lr / bc1 * M / (np.sqrt(V / bc2) + eps)), (s + "/m", M), (s + "/v", V)])

    def ss(a):
        return np.array([(f64(a) ** 2).sum(), 0.0])
    for name, skip, nesterov, first, gs in (("first", False, 0, 1, 1.0), ("momentum", False, 0, 0, 0.5), ("nesterov", False, 1, 0, 1.0), ("skip",
        True, 0, 0, 1.0)):
        h = hyper(0.5, gs, 0.9, 1e-3, 0.02, 1e-8, first, nesterov)
        lr, gs_, mu, wd, trust, eps = f64(h)[:6]
        W, G = f64(w), f64(g) * gs_
        wn, gn = np.sqrt((W ** 2).sum()), np.sqrt((G ** 2).sum())
        local = 1.0 if skip or wn == 0 or gn == 0 else trust * wn / (gn + wd * wn + eps)
        d = local * lr * (G + (0.0 if skip else wd) * W)
        M = d if first else mu * f64(m) + d
        s = "lars/" + name
        raw(s, "lars", {"skip": skip}, [(s + "/hyper", h), ("flat/w", w), ("flat/g", g), ("flat/m", m), ("flat/sw.f64", ss(w)), ("flat/sg.f64", ss(g))],
            [(s + "/w", W - (d + mu * M if nesterov else M)), (s + "/m", M)])
    big = rand(1000, scale=3.0)
    s0 = np.array([2.5, 1.0])
    raw("sumsq/adds", "sumsq", {}, [("sumsq/adds/g", big), ("sumsq/s0.f64", s0)], [("sumsq/adds/s.f64", s0 + ss(big))])
    bad = rand(21)
    bad[[3, 17, 20]] = [np.nan, np.inf, -np.inf]
    raw("sumsq/non_finite", "sumsq", {}, [("sumsq/non_finite/g", bad), ("sumsq/s0.f64", s0)], [("sumsq/non_finite/s.f64", np.array([np.nan, 4.0]))])
    raw("scale/half", "scale", {}, [("scale/half/hyper", np.array([0.3], np.float32)), ("flat/g", g)], [("scale/half/x", f64(g) * f64(np.array([0.3],
        np.float32)))])
    decay = np.array([0.97, 1 - 0.97], np.float32)
    ema = torch.from_numpy(f64(w)) * float(decay[0]) + torch.from_numpy(f64(g)) * float(decay[1])
    raw("ema/step", "ema", {}, [("ema/step/hyper", decay), ("flat/w", w), ("flat/g", g)], [("ema/step/average", ema.numpy())])

    for name, step, gs, clip, size in (("first", 1, 1.0, False, 1.0), ("later", 5, 0.5, False, 1.0), ("clip", 5, 1.0, True, 30.0)):
        h = hyper(1e-2, gs, 0.9, 0.999, 1e-6, 0.02, 1 - 0.9 ** step, 1 - 0.999 ** step, step)
        lr, gs_, b1, b2, eps, wd, bc1, bc2, _ = f64(h)
        ws = (w * np.float32(size)).astype(np.float32)
        W, G = f64(ws), f64(g) * gs_
        M, V = b1 * f64(m) + (1 - b1) * G, b2 * f64(v) + (1 - b2) * G * G
        u = M / bc1 / (np.sqrt(V / bc2) + eps) + wd * W
        sums = np.array([(W ** 2).sum(), (u ** 2).sum()])
        s = "lamb_moments/" + name
        raw(s, "lamb_moments", {}, [(s + "/hyper", h), (s + "/w", ws), ("flat/g", g), ("flat/m", m), ("flat/v", v)],
            [(s + "/s.f64", sums), (s + "/m", M), (s + "/v", V)])
        u = f64(m) / bc1 / (np.sqrt(f64(v) / bc2) + eps) + wd * W
        trust = np.sqrt(sums[0] / sums[1])
        t = "lamb/" + name
        raw(t, "lamb", {"clip": clip}, [(s + "/hyper", h), (s + "/w", ws), ("flat/m", m), ("flat/v", v), (s + "/s.f64", sums)],
            [(t + "/w", W - lr * (min(trust, 1.0) if clip else trust) * u)])


# ---- files --------------------------------------------------------------------------------------------------------------------------

DT = {"float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64", "uint16": "BF16"}  # uint16 holds the bits of a bfloat16


def write(folder):
    head, off, blob = {"__metadata__": {"made_by": f"make_fixtures.py with PyTorch {torch.__version__}, no third-party data"}}, 0, []
    for k in sorted(TENSORS, key=lambda k: (-TENSORS[k].dtype.itemsize, k)):  # widest first: every tensor is aligned
        b = TENSORS[k].astype(TENSORS[k].dtype.newbyteorder("<")).tobytes()
        head[k] = {"dtype": DT[str(TENSORS[k].dtype)], "shape": list(TENSORS[k].shape), "data_offsets": [off, off + len(b)]}
        off += len(b)
        blob.append(b)
    h = json.dumps(head, separators=(",", ":")).encode()
    h += b" " * (-len(h) % 8)
    with open(os.path.join(folder, "ops.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(h)) + h + b"".join(blob))
    with open(os.path.join(folder, "ops.json"), "w") as f:
        f.write('{"made_by": %s,\n"cases": [\n%s\n]}\n' % (json.dumps(head["__metadata__"]["made_by"]), ",\n".join(json.dumps(c) for c in CASES)))
    kinds = sorted({c["kind"] for c in CASES})
    print(f"{len(CASES)} cases of {len(kinds)} kinds, {len(TENSORS)} tensors, {8 + len(h) + off} bytes\n{' '.join(kinds)}")


if __name__ == "__main__":
    for part in (all_convs, all_matmuls, all_norms, all_elementwise, all_pools, all_losses, all_moves, all_flat):
        part()
    language.add(sys.modules[__name__])
    transformer.add(sys.modules[__name__])
    losses.add(sys.modules[__name__])
    transformer.masks(sys.modules[__name__])  # behind the others: every case takes numbers from one stream
    write(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)))
