#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""The peer: training steps of a vision transformer in PyTorch, data-parallel over gloo, on synthetic 224x224 images.

    python3 vit_torch.py --size deit-s --world 2 --threads 1 --batch 16 --dtype bf16

The network is that of timm's deit_*_patch16_224 and vit_*_patch16_224, with scaled_dot_product_attention, without dropout. A step is zero_grad, forward,
cross-entropy, backward (with DDP's all-reduce), fused AdamW. Prints one JSON line: img_s and img_s_best count the images of all ranks, step_ms is the median,
rss_mb the largest peak of a rank, first_step_s the time from start of the program to the end of the first step.
"""
import argparse, json, statistics

import ranks

SIZES = {"ti": (192, 12, 3), "s": (384, 12, 6), "b": (768, 12, 12), "l": (1024, 24, 16)}  # width, blocks, heads
p = argparse.ArgumentParser()
p.add_argument("--size", choices=["deit-ti", "deit-s", "deit-b", "vit-ti", "vit-s", "vit-b", "vit-l"], default="deit-s")
p.add_argument("--world", type=int, default=1)
p.add_argument("--threads", type=int, default=1)
p.add_argument("--batch", type=int, default=16, help="images a rank")
p.add_argument("--dtype", choices=("f32", "bf16"), default="f32", help="bf16 = autocast")
p.add_argument("--warm", type=int, default=4)
p.add_argument("--steps", type=int, default=8)
p.add_argument("--bucket-mb", type=int, default=25)
p.add_argument("--compile", action="store_true", help="torch.compile (needs a C++ compiler)")
p.add_argument("--untuned", action="store_true", help="leave malloc and the rest of the environment as they are")
p.add_argument("--no-pin", action="store_true")
p.add_argument("--profile", action="store_true")
a = p.parse_args()
rank = ranks.launch(a.world, a.threads, not a.untuned, not a.no_pin)

import torch  # noqa: E402  (after launch, see ranks.py)
import torch.distributed as dist  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class ViT(nn.Module):
    def __init__(self, dim, depth, heads, classes=1000, side=224, patch=16):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.empty(1, (side // patch) ** 2 + 1, dim))
        self.blocks = nn.Sequential(*(Block(dim, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(dim, eps=1e-6), nn.Linear(dim, classes)
        nn.init.trunc_normal_(self.pos, std=0.02)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.trunc_normal_(m.weight, std=0.02)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.blocks(x))[:, 0])


torch.set_num_threads(a.threads)
torch.manual_seed(0)
if a.world > 1:
    dist.init_process_group("gloo")
net = ViT(*SIZES[a.size.split("-")[1]]).train()
params = sum(w.numel() for w in net.parameters())
if a.compile:
    net = torch.compile(net)
if a.world > 1:
    net = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=a.bucket_mb, gradient_as_bucket_view=True)
opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
torch.manual_seed(1 + rank)
x, y = torch.randn(a.batch, 3, 224, 224), torch.randint(0, 1000, (a.batch,))


def step():
    opt.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.dtype == "bf16"):
        loss = F.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    return loss.item()


losses, times, first, rss = ranks.measure(step, a, rank)
if rank == 0:
    n, med = a.batch * a.world, statistics.median(times)
    print(json.dumps({
        "peer": "pytorch", "version": torch.__version__, "model": a.size, "params": params, "world": a.world, "threads": a.threads, "batch": a.batch,
        "dtype": a.dtype, "compile": a.compile, "tuned": not a.untuned, "img_s": round(n / med, 3), "img_s_best": round(n / min(times), 3),
        "step_ms": round(med * 1e3, 1), "rss_mb": round(rss, 1), "first_step_s": round(first, 2),
        "loss_first": round(losses[0], 4), "loss_last": round(losses[-1], 4)}), flush=True)
if a.world > 1:
    ranks.leave()
