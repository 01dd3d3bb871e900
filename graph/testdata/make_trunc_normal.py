#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""Write what truncated normals of PyTorch and timm look like: trunc_normal.json.

    python3 make_trunc_normal.py [FOLDER]        # needs torch and timm

Of each initialiser 2^22 draws in float64, as 8 tensors: deviation, largest magnitude, and quantiles. shape is the weight's, for those
that depend on the fan.
"""
import json, os, sys

import timm
import torch
from timm.layers import trunc_normal_, trunc_normal_tf_, variance_scaling_, lecun_normal_

torch.set_default_dtype(torch.float64)
SHAPE = [512, 64, 4, 4]  # fan-in 1024, fan-out 8192
AT = [0.01, 0.05, 0.25, 0.4, 0.5, 0.75, 0.95, 0.99]


def case(init, fill, **options):
    torch.manual_seed(20261130)
    parts = [torch.empty(SHAPE) for _ in range(8)]
    for w in parts:
        fill(w, **options)
    w = torch.cat(parts).flatten()
    s = w.sort().values
    quantiles = [float(f"{s[int(q * (len(s) - 1))]:.6g}") for q in AT]
    return {"init": init, "options": options, "deviation": float(f"{w.std():.6g}"), "largest": float(f"{w.abs().max():.6g}"), "quantiles": quantiles}


cases = [
    case("trunc_normal_", trunc_normal_, std=0.02),
    case("torch.trunc_normal_", torch.nn.init.trunc_normal_, std=0.02),
    case("trunc_normal_", trunc_normal_, std=1.0),
    case("trunc_normal_", trunc_normal_, std=1.0, a=-0.5, b=0.5),
    case("trunc_normal_", trunc_normal_, std=0.5, a=-0.6, b=0.6),
    case("trunc_normal_tf_", trunc_normal_tf_, std=0.02),
    case("variance_scaling_", variance_scaling_, scale=2.0, mode="fan_out", distribution="truncated_normal"),
    case("variance_scaling_", variance_scaling_, scale=1.0, mode="fan_avg", distribution="truncated_normal"),
    case("lecun_normal_", lecun_normal_),
]
folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, "trunc_normal.json"), "w") as f:
    head = {"made_by": f"make_trunc_normal.py with PyTorch {torch.__version__}, timm {timm.__version__}, no third-party data", "shape": SHAPE, "at": AT}
    f.write(json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")
