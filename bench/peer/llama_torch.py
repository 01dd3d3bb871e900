#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""The peer: training steps of a Llama in PyTorch, data-parallel over gloo, on random tokens.

    python3 llama_torch.py --shape stories15M --world 2 --threads 1 --batch 8 --dtype bf16

A step is zero_grad, forward, cross-entropy over all logits, backward (with DDP's all-reduce), AdamW. Prints one JSON line: tok_s and tok_s_best
count the tokens of all ranks, step_ms is the median, rss_mb the largest peak of a rank, first_step_s the time from start of the program to the
end of the first step.
"""
import argparse, json, statistics

import ranks

p = argparse.ArgumentParser()
p.add_argument("--shape", default="stories15M")
p.add_argument("--world", type=int, default=1)
p.add_argument("--threads", type=int, default=1)
p.add_argument("--batch", type=int, default=8, help="sequences a rank")
p.add_argument("--seq", type=int, default=256, help="tokens of a sequence")
p.add_argument("--dtype", choices=("f32", "bf16"), default="f32", help="bf16 = autocast")
p.add_argument("--optimizer", choices=("fused", "foreach"), default="fused", help="implementation of AdamW")
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
import torch.nn.functional as F  # noqa: E402

import llama_net  # noqa: E402

torch.set_num_threads(a.threads)
torch.manual_seed(0)
if a.world > 1:
    dist.init_process_group("gloo")
shape = llama_net.SHAPES[a.shape]
net = llama_net.Llama(**shape, seq=a.seq).init().train()
params = sum(w.numel() for w in net.parameters())
if a.compile:
    net = torch.compile(net)
if a.world > 1 and a.hook != "off":
    net = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=a.bucket_mb, gradient_as_bucket_view=True)
    ranks.compress(net, a.hook)
opt = torch.optim.AdamW(net.parameters(), lr=3e-4, **{a.optimizer: True})
torch.manual_seed(1 + rank)
tokens = torch.randint(0, shape["vocab"], (a.batch, a.seq + 1))
x, y = tokens[:, :-1].contiguous(), tokens[:, 1:].reshape(-1)


def step():
    opt.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.dtype == "bf16"):
        loss = F.cross_entropy(net(x).view(-1, shape["vocab"]), y)
    loss.backward()
    opt.step()
    return loss.item()


losses, times, first, rss = ranks.measure(step, a, rank)
if rank == 0:
    n, med = a.batch * a.seq * a.world, statistics.median(times)
    print(json.dumps({
        "peer": "pytorch", "version": torch.__version__, "model": a.shape, "params": params, "world": a.world, "threads": a.threads, "batch": a.batch,
            "seq": a.seq,
        "dtype": a.dtype, "optimizer": a.optimizer, "compile": a.compile, "tuned": not a.untuned, "tok_s": round(n / med, 1),
            "tok_s_best": round(n / min(times), 1),
        "step_ms": round(med * 1e3, 1), "rss_mb": round(rss, 1), "first_step_s": round(first, 2),
        "loss_first": round(losses[0], 4), "loss_last": round(losses[-1], 4)}), flush=True)
if a.world > 1:
    ranks.leave()
