#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""Write traces of moving averages: ema.json.

    python3 make_ema.py [FOLDER]        # needs torch and timm

timm.utils.ModelEmaV3 in float64 over a module whose weights are set anew in each step. README.md beside this file describes the format.
"""
import json, os, sys

import numpy as np
import timm
import torch
from timm.utils import ModelEmaV3

torch.set_default_dtype(torch.float64)
RNG = np.random.default_rng(20261130)
STEPS, N = 12, 5


class Net(torch.nn.Module):
    def __init__(self, start):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))


def trace(values, **options):
    net = Net(values[0])
    ema = ModelEmaV3(net, **options)
    out = []
    for step, v in enumerate(values[1:], 1):
        net.w.data.copy_(torch.tensor(v, dtype=torch.float64))
        ema.update(net, step=step)
        out.append([float(f"{x:.9g}") for x in ema.module.w.detach().numpy()])
    return out


values = [[float(x) for x in v.astype(np.float32)] for v in RNG.standard_normal((STEPS + 1, N))]
options = [(0.5, False), (0.9, False), (0.9998, False), (0.7, True), (0.9999, True)]
cases = [{"decay": d, "warmup": w, "averages": trace(values, decay=d, use_warmup=w)} for d, w in options]
made_by = f"make_ema.py with timm {timm.__version__} and PyTorch {torch.__version__}, no third-party data"
with open(os.path.join(sys.argv[1] if len(sys.argv) > 1 else ".", "ema.json"), "w") as f:
    json.dump({"made_by": made_by, "values": values, "cases": cases}, f)
    f.write("\n")
