#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""The peer: ResNet-50 training steps in PyTorch, data-parallel over gloo, on synthetic 224x224 images.

    python3 resnet_torch.py --world 2 --threads 1 --batch 16 --dtype bf16

A step is zero_grad, forward, cross-entropy, backward (with DDP's all-reduce), SGD with momentum and weight decay. Prints one JSON line:
img_s and img_s_best count the images of all ranks, step_ms is the median, rss_mb the largest peak of a rank, first_step_s the time from start
of the program to the end of the first step.
"""
import argparse, json, statistics

import ranks

p = argparse.ArgumentParser()
p.add_argument("--world", type=int, default=1)
p.add_argument("--threads", type=int, default=1)
p.add_argument("--batch", type=int, default=16, help="images a rank")
p.add_argument("--dtype", choices=("f32", "bf16"), default="f32", help="bf16 = autocast")
p.add_argument("--layout", choices=("channels_last", "contiguous"), default="channels_last")
p.add_argument("--warm", type=int, default=4)
p.add_argument("--steps", type=int, default=8)
p.add_argument("--bucket-mb", type=int, default=25)
p.add_argument("--hook", choices=("none", "fp16", "bf16", "off"), default="none", help="compression of gradients by DDP's hook; off: ranks do not reduce")
p.add_argument("--compile", action="store_true", help="torch.compile (needs a C++ compiler)")
p.add_argument("--untuned", action="store_true", help="leave malloc and the rest of the environment as they are")
p.add_argument("--no-pin", action="store_true")
p.add_argument("--profile", action="store_true")
a = p.parse_args()
rank = ranks.launch(a.world, a.threads, not a.untuned, not a.no_pin)

import torch  # noqa: E402  (after launch, see ranks.py)
import torch.distributed as dist  # noqa: E402
import torch.nn as nn  # noqa: E402


class Block(nn.Module):
    def __init__(self, cin, width, stride):
        super().__init__()
        cout = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(cin, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, cout, 1, bias=False), nn.BatchNorm2d(cout)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    c = 64
    for i, n in enumerate((3, 4, 6, 3)):
        for j in range(n):
            layers.append(Block(c, 64 << i, 2 if i and j == 0 else 1))
            c = 256 << i
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 1000))
    for m in net.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
    return net


torch.set_num_threads(a.threads)
torch.manual_seed(0)
if a.world > 1:
    dist.init_process_group("gloo")
fmt = torch.channels_last if a.layout == "channels_last" else torch.contiguous_format
net = resnet50().to(memory_format=fmt).train()
if a.compile:
    net = torch.compile(net)
if a.world > 1 and a.hook != "off":
    net = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=a.bucket_mb, gradient_as_bucket_view=True)
    ranks.compress(net, a.hook)
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
lossf = nn.CrossEntropyLoss()
torch.manual_seed(1 + rank)
x = torch.randn(a.batch, 3, 224, 224).contiguous(memory_format=fmt)
y = torch.randint(0, 1000, (a.batch,))


def step():
    opt.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.dtype == "bf16"):
        loss = lossf(net(x), y)
    loss.backward()
    opt.step()
    return loss.item()


losses, times, first, rss = ranks.measure(step, a, rank)
if rank == 0:
    n, med = a.batch * a.world, statistics.median(times)
    print(json.dumps({
        "peer": "pytorch", "version": torch.__version__, "model": "resnet50", "world": a.world, "threads": a.threads, "batch": a.batch, "dtype": a.dtype,
        "layout": a.layout, "compile": a.compile, "tuned": not a.untuned, "img_s": round(n / med, 3), "img_s_best": round(n / min(times), 3),
        "step_ms": round(med * 1e3, 1), "rss_mb": round(rss, 1), "first_step_s": round(first, 2),
        "loss_first": round(losses[0], 4), "loss_last": round(losses[-1], 4)}), flush=True)
if a.world > 1:
    ranks.leave()
