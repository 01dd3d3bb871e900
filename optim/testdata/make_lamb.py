#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""Write traces of timm's Lamb in float64: lamb.json.

    python3 make_lamb.py [FOLDER]        # needs torch, numpy and timm

Start, gradients and format are those of make_traces.py. clip is timm's own max_grad_norm.
"""
import os, sys

import timm
import torch
from timm.optim import Lamb

import make_traces as mt


def case(name, decay=0.02, clip=0.0, b1=0.9, b2=0.999, eps=1e-6, trust_clip=False, always_adapt=False, grad_scale=1.0):
    config = {"rule": "lamb", "beta1": b1, "beta2": b2, "eps": eps, "decay": decay, "trust_clip": trust_clip, "always_adapt": always_adapt}
    norms = []

    def make(groups):
        opt = Lamb(groups, lr=1.0, betas=(b1, b2), eps=eps, max_grad_norm=clip or None, trust_clip=trust_clip, always_adapt=always_adapt)
        step = opt.step

        def measured():
            grads = [p.grad.flatten() for g in opt.param_groups for p in g["params"]]
            norms.append(float(torch.cat(grads).norm()))
            step()
        opt.step = measured
        return opt
    c = mt.run_torch(name, config, make, grad_scale=grad_scale, lr_scale=0.1)
    c["clip"] = clip
    if clip:
        c["norms"] = norms
    return c


cases = [case("lamb"), case("lamb_clip", clip=1.0), case("lamb_trust_clip", trust_clip=True, decay=0.5), case("lamb_always_adapt", always_adapt=True),
         case("lamb_no_decay", decay=0.0), case("lamb_scaled", grad_scale=1 / 64, b2=0.95, eps=1e-8, clip=0.25)]
folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
mt.write(folder, "lamb.json", {"made_by": f"make_lamb.py with PyTorch {torch.__version__}, timm {timm.__version__}, no third-party data", "cases": cases})
