"""Makes cases_*.json.gz: calls of operators with the results of PyTorch (2.2.2, CPU, in f64 from inputs that the dtypes hold exactly).

Run: python3 cases.py FAMILY…   (needs torch). Each case comes plain and with its tensors as views: permuted, padded, with an offset.
"""
import gzip
import json
import math
import random
import sys

import torch
import torch.nn.functional as F

FLOATS = ["f32", "bf16", "f16"]
TYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16, "i8": torch.int8, "u8": torch.uint8,
    "i16": torch.int16, "i32": torch.int32,
         "i64": torch.int64, "bool": torch.bool}
NAMES = {v: k for k, v in TYPES.items()}
cases = []


def num(v):
    v = float(v)
    if math.isnan(v):
        return "nan"
    if math.isinf(v):
        return "inf" if v > 0 else "-inf"
    return int(v) if v == int(v) and abs(v) < 1e15 else float("%.10g" % v)


def nums(t):
    return [num(v) for v in t.detach().reshape(-1).tolist()]


def mangled(t):
    """The same values as a view of a larger storage."""
    if t.dim() == 0:
        return torch.stack([t, t, t])[1]
    big = torch.zeros([d + 1 + (i == t.dim() - 1) for i, d in enumerate(t.shape)], dtype=t.dtype)
    perm = list(range(t.dim()))
    random.shuffle(perm)
    big = big.permute(perm).contiguous().permute([perm.index(i) for i in range(t.dim())])
    view = big
    for i, d in enumerate(t.shape):
        view = view.narrow(i, 1, d)
    view.copy_(t)
    return view


def T(t, fmt=None, plain=False):
    """An input tensor. plain: never a view."""
    return {"k": "T", "_t": t, "_plain": plain, "fmt": fmt}


def O(want, dtype=None, fmt=None, tol=None, plain=False):
    """An output tensor; want may be f64."""
    dtype = dtype or NAMES[want.dtype]
    return {"k": "T", "_w": want, "_d": dtype, "_plain": plain, "fmt": fmt, "tol": tol}


def IO(was, want, fmt=None, tol=None, plain=False):
    """A tensor in place."""
    return {"k": "T", "_t": was, "_w": want, "_d": NAMES[was.dtype], "_plain": plain, "fmt": fmt, "tol": tol}


def I(*v):
    return {"k": "I", "v": list(v)}


def B(*v):
    return {"k": "B", "v": [int(x) for x in v]}


def S(v, d="f32"):
    return {"k": "S", "d": d, "v": [num(v)]}


def i(v):
    return {"k": "i", "v": [int(v)]}


def f(v):
    return {"k": "f", "v": [num(v)]}


def s(v):
    return {"k": "s", "str": v}


def dt(d):
    return i({"f32": 0, "f16": 1, "i8": 2, "i32": 3, "u8": 4, "i16": 6, "i64": 9, "f64": 11, "bool": 12, "bf16": 27}[d])


def L(*v):
    return {"k": "L", "l": list(v)}


N = {"k": "N"}


def real(a, view):
    """An argument as JSON."""
    if a["k"] == "L":
        return {"k": "L", "l": [real(x, view) for x in a["l"]]}
    if a["k"] != "T":
        return a
    out = {"k": "T"}
    if isinstance(a.get("_t"), str):  # the test makes it
        return {"k": "T", "make": a["_t"]}
    if "_t" in a:
        t = a["_t"]
        if view and not a["_plain"]:
            t = mangled(t)
    else:
        w = a["_w"]
        t = torch.zeros(list(w.shape), dtype=TYPES[a["_d"]])
        if view and not a["_plain"]:
            t = mangled(t)
    n = t.untyped_storage().nbytes() // t.element_size()
    out.update(d=NAMES[t.dtype], s=list(t.shape), st=list(t.stride()), n=n)
    if t.storage_offset():
        out["o"] = t.storage_offset()
    if a.get("fmt"):
        out["fmt"] = a["fmt"]
    if "_t" in a:
        out["v"] = nums(torch.as_strided(t, [n], [1], 0))
    if "_w" in a and not a.get("_unread"):
        out["w"] = nums(a["_w"])
        if a.get("tol"):
            out["tol"] = a["tol"]
    return out


def case(op, *args, name=None, views=True, **options):
    name = name or op
    for view in [False, True] if views else [False]:
        c = {"name": "%s/%d%s" % (name, len(cases), "/view" if view else ""), "op": op, "args": [real(a, view) for a in args]}
        c.update(options)
        cases.append(c)


def rnd(*shape, d="f32", scale=1.0):
    """Random values that the dtype holds exactly."""
    return (torch.randn(*shape) * scale).to(torch.bfloat16 if d == "bf16" else torch.float16).to(TYPES[d])


def pos(*shape, d="f32"):
    return (torch.rand(*shape) + 0.25).to(torch.bfloat16).to(TYPES[d])


def ints(lo, hi, *shape, d="i32"):
    return torch.randint(lo, hi, shape).to(TYPES[d])


D = torch.Tensor.double

if __name__ == "__main__":
    import cases as shared

    for family in sys.argv[1:]:
        shared.cases.clear()
        random.seed(family)
        torch.manual_seed(len(family))
        __import__("cases_" + family)
        text = "[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in shared.cases) + "\n]\n"
        with open("cases_%s.json.gz" % family, "wb") as out:
            out.write(gzip.compress(text.encode(), mtime=0))
        print(family, len(shared.cases))
