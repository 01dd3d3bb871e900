#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""Write what two small ResNets do in PyTorch float64: NAME.safetensors and NAME.json for NAME in basic, bottleneck.

    python3 make_reference.py [FOLDER]        # needs torch and numpy

README.md beside this file describes the content.
"""
import json, os, struct, sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
STEPS, BATCH, CLASSES, HEAD = 5, 4, 10, 256


class Basic(nn.Module):
    expansion = 1

    def __init__(self, cin, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = shortcut(cin, width, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, cin, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)  # v1.5: the stride sits here
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = shortcut(cin, 4 * width, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + (x if self.downsample is None else self.downsample(x)))


def shortcut(cin, cout, stride):
    if cin == cout and stride == 1:
        return None
    return nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))


class ResNet(nn.Module):
    """Small-image stem: one 3x3 convolution of stride 1, no max pooling."""

    def __init__(self, block, depths, width):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        c = width
        for i, n in enumerate(depths):
            blocks = []
            for j in range(n):
                blocks.append(block(c, width << i, 2 if i > 0 and j == 0 else 1))
                c = (width << i) * block.expansion
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(c, CLASSES)
        self.means = {}

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        self.means = {"stem": x.mean((0, 2, 3))}
        for i in range(1, 5):
            x = getattr(self, f"layer{i}")(x)
            self.means[f"layer{i}"] = x.mean((0, 2, 3))
        return self.fc(x.mean((2, 3)))


def grid(a):
    """The nearest value on the bfloat16 grid: half the file, and the same start for a bfloat16 run."""
    return torch.as_tensor(a).to(torch.bfloat16)


def fill(model, rng):
    """Kaiming normal, fan-out; gains and shifts away from 1 and 0, so that a forgotten one shows."""
    for name, p in model.named_parameters():
        if p.dim() == 4:
            v = rng.standard_normal(p.shape) * np.sqrt(2 / (p.shape[0] * p.shape[2] * p.shape[3]))
        elif p.dim() == 2:
            v = rng.standard_normal(p.shape) / np.sqrt(p.shape[1])
        elif "bn" in name or "downsample.1" in name:
            v = rng.uniform(0.7, 1.3, p.shape) if name.endswith("weight") else rng.standard_normal(p.shape) * 0.1
        else:
            v = rng.standard_normal(p.shape) * 0.1
        with torch.no_grad():
            p.copy_(grid(v).double())


def part(t):
    """A tensor, or the flat beginning of a long one."""
    return t if t.numel() <= HEAD else t.flatten()[:HEAD]


def reference(block, depths, width, smoothing, seed):
    rng = np.random.default_rng(seed)
    x = grid(rng.standard_normal((BATCH, 3, 32, 32))).double()
    y = torch.from_numpy(rng.integers(0, CLASSES, BATCH))
    model = ResNet(block, depths, width).train()
    fill(model, rng)
    start = {k: v.clone() for k, v in model.state_dict().items()}
    config = {"block": block.__name__.lower(), "depths": depths, "width": width, "classes": CLASSES, "small_stem": True, "bn_eps": 1e-5, "bn_momentum": 0.1,
              "label_smoothing": smoothing, "lr": 0.05, "momentum": 0.9, "weight_decay": 1e-3, "steps": STEPS}
    T = {"x": grid(x), "labels": y.to(torch.int32)}
    T.update({k: grid(v) for k, v in start.items() if v.dim() and "running" not in k})
    J = {"config": config, "losses": [], "grad_norm": {}, "final_norm": {}, "delta_norm": {}}

    # Two ranks of half a batch each, statistics apart, gradients averaged: what data-parallel training must give.
    names = [k for k, _ in model.named_parameters()]
    halves, total, grads = [], 0.0, [0.0] * len(names)
    for r in range(2):
        model.load_state_dict(start)
        logits = model(x[2 * r:2 * r + 2])
        loss = F.cross_entropy(logits, y[2 * r:2 * r + 2], label_smoothing=smoothing) / 2
        grads = [a + g for a, g in zip(grads, torch.autograd.grad(loss, list(model.parameters())))]
        halves.append(logits.detach())
        total += loss.item()
        if r == 0:
            T.update({"ddp2.rank0." + k: v.clone() for k, v in model.state_dict().items() if "running" in k and k.startswith("bn1")})
    J["ddp2"] = {"loss": total, "grad_norm": {k: g.norm().item() for k, g in zip(names, grads)}}
    T["ddp2.logits"] = torch.cat(halves)

    model.load_state_dict(start)
    plain = [p for p in model.parameters() if p.dim() < 2]
    opt = torch.optim.SGD([{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": config["weight_decay"]}, {"params": plain}],
                          lr=config["lr"], momentum=config["momentum"])
    for step in range(STEPS):
        opt.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y, label_smoothing=smoothing)
        loss.backward()
        J["losses"].append(loss.item())
        if step == 0:
            T["logits"] = logits
            T.update({"mean." + k: v for k, v in model.means.items()})
            for k, p in model.named_parameters():
                T["grad." + k] = p.grad.clone()
                J["grad_norm"][k] = p.grad.norm().item()
            T.update({"step1." + k: v.clone() for k, v in model.state_dict().items() if "running" in k})
        opt.step()
    for k, v in model.state_dict().items():
        if v.dim():
            T["final." + k] = part(v)
            J["final_norm"][k] = v.norm().item()
            J["delta_norm"][k] = (v - start[k]).norm().item()
    model.eval()
    with torch.no_grad():
        logits = model(x)
        T["eval.logits"] = logits
        J["eval_loss"] = F.cross_entropy(logits, y, label_smoothing=smoothing).item()
    J["parameters"] = sum(p.numel() for p in model.parameters())
    return T, J


def save(folder, name, tensors, info):
    head, off, blob = {"__metadata__": {"made_by": info["made_by"]}}, 0, []
    arrays = {}
    for k, v in tensors.items():
        v = v.detach().contiguous()
        if v.dtype == torch.bfloat16:
            arrays[k] = ("BF16", v.view(torch.int16).numpy())
        elif v.dtype == torch.int32:
            arrays[k] = ("I32", v.numpy())
        else:
            arrays[k] = ("F32", v.float().numpy())
    for k in sorted(arrays, key=lambda k: (-arrays[k][1].itemsize, k)):
        dt, a = arrays[k]
        head[k] = {"dtype": dt, "shape": list(a.shape), "data_offsets": [off, off + a.nbytes]}
        off += a.nbytes
        blob.append(a.tobytes())
    h = json.dumps(head, separators=(",", ":")).encode()
    h += b" " * (-len(h) % 8)
    with open(os.path.join(folder, name + ".safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(h)) + h + b"".join(blob))
    with open(os.path.join(folder, name + ".json"), "w") as f:
        json.dump(info, f, indent=1)
        f.write("\n")
    print(name, info["parameters"], "parameters", 8 + len(h) + off, "bytes, losses", info["losses"])


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    made = f"make_reference.py with PyTorch {torch.__version__}, no third-party data"
    for name, args in {"basic": (Basic, [2, 2, 2, 2], 8, 0.0, 1), "bottleneck": (Bottleneck, [1, 1, 1, 1], 8, 0.1, 2)}.items():
        tensors, info = reference(*args)
        save(folder, name, tensors, {"made_by": made, **info})
