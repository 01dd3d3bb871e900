#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""Write what timm's drop_path and its rule for the depth compute: droppath.json.

    python3 make_droppath.py [FOLDER]        # needs torch and timm

timm draws the mask from torch's generator; here Tensor.bernoulli_ is replaced by the mask of npu/kinds.go, and everything else is timm's, in float64. A case:
p, id and seed of the op, x, y = drop_path(x), and dx, the gradient of sum(w*y). rates: calculate_drop_path_rates, and the rule within timm's resnet.py.
"""
import json, os, sys

import numpy as np
import timm
import torch
from timm.layers import calculate_drop_path_rates, drop_path

torch.set_default_dtype(torch.float64)
RNG = np.random.default_rng(20261130)
M64 = (1 << 64) - 1


def keep(seed, layer, i, p):
    z = (seed & M64) ^ ((layer + 1) * 0xD1342543DE82EF95 & M64)
    z = (z + (i + 1) * 0x9E3779B97F4A7C15) & M64
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & M64
    z ^= z >> 31
    return (z >> 40) * 2.0**-24 >= p


def case(p, layer, seed, shape):
    def bernoulli_(self, prob):
        assert prob == 1 - p
        return self.copy_(torch.tensor([float(keep(seed, layer, i, p)) for i in range(len(self))]).reshape(self.shape))

    old, torch.Tensor.bernoulli_ = torch.Tensor.bernoulli_, bernoulli_
    x = torch.tensor(RNG.standard_normal(shape).astype(np.float32).astype(np.float64), requires_grad=True)
    w = torch.tensor(RNG.standard_normal(shape).astype(np.float32).astype(np.float64))
    y = drop_path(x, p, training=True)
    (y * w).sum().backward()
    torch.Tensor.bernoulli_ = old
    flat = lambda t: [float(f"{v:.9g}") for v in t.detach().flatten().tolist()]
    return {"p": p, "layer": layer, "seed": seed, "shape": list(shape), "x": flat(x), "w": flat(w), "y": flat(y), "dx": flat(x.grad)}


cases = [case(0.3, 0, 42, (6, 2, 1, 2)), case(0.5, 1, -7, (8, 3)), case(0.05, 2, 1 << 60, (24, 1)), case(0.0, 0, 1, (3, 2))]
from timm.models.resnet import resnet50
net = resnet50(drop_path_rate=0.05)
blocks = [b for s in (net.layer1, net.layer2, net.layer3, net.layer4) for b in s]
rates = [
    {"last": 0.1, "blocks": 12, "rates": calculate_drop_path_rates(0.1, 12)},
    {"last": 0.4, "blocks": 1, "rates": calculate_drop_path_rates(0.4, 1)},
    {"last": 0.05, "blocks": 16, "rates": [b.drop_path.drop_prob if b.drop_path is not None else 0.0 for b in blocks]},
]
folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, "droppath.json"), "w") as f:
    head = {"made_by": f"make_droppath.py with PyTorch {torch.__version__}, timm {timm.__version__}, no third-party data", "rates": rates}
    f.write(json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")
