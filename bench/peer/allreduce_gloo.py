#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""The peer's all-reduce: torch.distributed over gloo, in-place sum of float32, 4 KiB to 256 MiB. One JSON line a size (median of the slowest rank).

    python3 allreduce_gloo.py --world 2
"""
import argparse, json, statistics, time

import ranks

p = argparse.ArgumentParser()
p.add_argument("--world", type=int, default=2)
p.add_argument("--min", type=int, default=4 << 10)
p.add_argument("--max", type=int, default=256 << 20)
a = p.parse_args()
rank = ranks.launch(a.world, 1)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

torch.set_num_threads(1)
dist.init_process_group("gloo")
n = a.min
while n <= a.max:
    x = torch.ones(n // 4)
    reps = 100 if n < 1 << 20 else 20 if n < 64 << 20 else 5
    times = []
    for _ in range(reps + 2):
        x.fill_(1)
        dist.barrier()
        t = time.perf_counter()
        dist.all_reduce(x)
        times.append(time.perf_counter() - t)
    assert x[0] == a.world and x[-1] == a.world
    med = torch.tensor([statistics.median(times[2:])])
    dist.all_reduce(med, dist.ReduceOp.MAX)
    if rank == 0:
        s = med.item()
        print(json.dumps({"peer": "gloo", "op": "allreduce", "world": a.world, "bytes": n, "us": round(s * 1e6, 1), "gb_s": round(n / s / 1e9, 3)}), flush=True)
    n *= 4
dist.destroy_process_group()
