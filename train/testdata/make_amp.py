#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""Write amp.json: PyTorch trains a small network in float16 with torch.amp.GradScaler, on the CPU.

    python3 make_amp.py [FILE]        # needs torch

README.md beside this file describes the format.
"""
import json, os, sys

import torch
import torch.nn.functional as F

torch.manual_seed(20261130)
torch.set_num_threads(1)

SAMPLES, FEATURES, HIDDEN, CLASSES, BATCH, STEPS = 64, 6, 64, 4, 16, 28
SCALER = {"init": 2.0 ** 22, "growth": 2.0, "backoff": 0.5, "interval": 4}
ADAMW = {"lr": 0.004, "decay": 0.01}


def rounded(x):
    """Multiples of 1/256 below 8 are exact in float16 and in nine digits."""
    return torch.round(x * 256) / 256


class Linear(torch.autograd.Function):
    """Activations and what arrives at them are float16, gradients of parameters float32. With torch.autocast those would be rounded to float16 too, and
    overflow much earlier than the activations do."""

    @staticmethod
    def forward(ctx, x, w, b):
        x, w = x.half(), w.half()
        ctx.save_for_backward(x, w)
        y = x @ w.T if b is None else (x.float() @ w.float().T + b)
        return y.half()

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        db = dy.float().sum(0) if ctx.needs_input_grad[2] else None
        return dy @ w, dy.float().T @ x.float(), db


def main():
    x = rounded(torch.randn(SAMPLES, FEATURES))
    y = torch.randint(0, CLASSES, (SAMPLES,))
    start = {
        "fc1.weight": rounded(torch.randn(HIDDEN, FEATURES) * 0.5),
        "fc1.bias": rounded(torch.randn(HIDDEN) * 0.1),
        "fc2.weight": rounded(torch.randn(CLASSES, HIDDEN) * 0.2),
    }
    w = {k: v.clone().requires_grad_() for k, v in start.items()}
    opt = torch.optim.AdamW(
        [{"params": [w["fc1.weight"], w["fc2.weight"]], "weight_decay": ADAMW["decay"]}, {"params": [w["fc1.bias"]], "weight_decay": 0.0}], lr=ADAMW["lr"])
    scaler = torch.amp.GradScaler("cpu", init_scale=SCALER["init"], growth_factor=SCALER["growth"], backoff_factor=SCALER["backoff"],
                                  growth_interval=SCALER["interval"])
    steps = []
    for step in range(STEPS):
        at = step * BATCH % SAMPLES
        before = scaler.get_scale()
        opt.zero_grad()
        logits = Linear.apply(F.relu(Linear.apply(x[at:at + BATCH], w["fc1.weight"], w["fc1.bias"])), w["fc2.weight"], None)
        assert logits.dtype == torch.float16
        loss = F.cross_entropy(logits.float(), y[at:at + BATCH])
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(p.grad) for p in w.values()]))
        bad = not torch.isfinite(norm).item()
        scaler.step(opt)
        scaler.update()
        assert bad == (scaler.get_scale() < before)
        steps.append({"loss": loss.item(), "scale": before, "skipped": bad, "norm": None if bad else norm.item()})
    out = {
        "made_by": f"make_amp.py with PyTorch {torch.__version__}, no third-party data", "scaler": SCALER, "adamw": ADAMW, "batch": BATCH,
        "x": x.flatten().tolist(), "labels": y.tolist(), "start": {k: v.flatten().tolist() for k, v in start.items()}, "steps": steps,
        "weights": {k: [float(f"{v:.9g}") for v in p.detach().flatten().tolist()] for k, p in w.items()},
    }
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "amp.json")
    with open(path, "w") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")
    print("".join("x" if s["skipped"] else "." for s in steps), steps[0]["loss"], steps[-1]["loss"])


main()
