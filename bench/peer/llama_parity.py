#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""The PyTorch twin of a run of a Llama from random weights: the same network, tokens, optimizer and schedule, read from the recipe itself; only the draws
differ (initial weights and order of the windows), so that held-out losses can be compared over seeds.

    gotrain tokenize --tokenizer stories260k --bos --eos --out train recipes/data/shakespeare/train.txt
    gotrain tokenize --tokenizer stories260k --bos --eos --out val recipes/data/shakespeare/val.txt
    python3 bench/peer/llama_parity.py --recipe recipes/llama-tiny.toml --train train --eval val --seeds 1,2,3

A folder made by gotrain tokenize --val-fraction has both parts: --train shards --eval shards. Prints a JSON line a seed, with the exact mean loss over the
held-out windows (every token but the first is a target once), and one with the mean and the deviation over the seeds. gotrain prints
the same number as the loss of its evaluation.

Keys of the recipe that would change the numbers and that this program does not know are an error. bf16 is autocast.
"""
import argparse, json, math, os, statistics, sys, time, tomllib

import numpy as np
import torch
import torch.nn.functional as F

import llama_net

# What is read of each section, with gotrain's defaults where the key is missing. None: must be given.
KEYS = {
    "llama": dict(size="", dim=0, hidden=0, layers=0, heads=0, kv_heads=0, vocab=0, tied_embeddings="auto", rope_theta=1e4, norm_eps=1e-5,
        init_std=0.02, init_depth_scaled=True),
    "text": dict(sequence=None, documents_apart=True),
    "train": dict(batch_per_rank=16, accumulate_steps=1, ranks=1, clip_norm=0.0, dtype="f32"),
    "optim": dict(name=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01),
    "schedule": dict(kind="cosine", warmup_steps=0, min_lr_ratio=0.0),
}
HARMLESS = {"text": {"tokenizer"}, "train": {"device", "threads_per_rank", "pin_cpus", "bucket_mb", "first_bucket_mb", "recompute"}}


def settings(path, overrides):
    with open(path, "rb") as f:
        recipe = tomllib.load(f)
    if recipe.get("model", {}) != {"name": "llama"}:
        sys.exit(f"{path}: [model] must be name = \"llama\" and nothing else")
    out = {"steps": recipe["run"].get("steps", 0)}
    for section, known in KEYS.items():
        given = recipe.get(section, {})
        strange = set(given) - set(known) - HARMLESS.get(section, set())
        if strange:
            sys.exit(f"{path}: this twin does not know [{section}] {', '.join(sorted(strange))}")
        out[section] = {k: given.get(k, v) for k, v in known.items()}
        missing = [k for k, v in out[section].items() if v is None]
        if missing:
            sys.exit(f"{path}: [{section}] {', '.join(missing)} is missing")
    for o in overrides:
        key, _, value = o.partition("=")
        section, _, name = key.partition(".")
        if key == "run.steps":
            out["steps"] = int(value)
        elif name in KEYS.get(section, {}):
            old = out[section][name]
            out[section][name] = value in ("true", "1") if isinstance(old, bool) else type(old)(value)
        else:
            sys.exit(f"--set {o}: this twin does not know the key")
    if out["steps"] < 1 or out["optim"]["name"] != "adamw" or out["schedule"]["kind"] not in ("cosine",
        "constant") or out["train"]["dtype"] not in ("f32", "bf16"):
        sys.exit(f"{path}: wants run.steps, adamw, a cosine or constant schedule, and f32 or bf16")
    return out


def shape_of(c):
    if c["size"] and c["size"] not in llama_net.SHAPES:
        sys.exit(f"llama.size = {c['size']}: this twin knows {', '.join(llama_net.SHAPES)}")
    shape = dict(llama_net.SHAPES.get(c["size"], {"tied": True}))
    for k in ("dim", "hidden", "layers", "heads", "kv_heads", "vocab"):
        if c[k]:
            shape[k] = c[k]
        elif k not in shape and k != "kv_heads":
            sys.exit(f"llama.{k} is missing")
    shape.setdefault("kv_heads", shape["heads"])
    if c["tied_embeddings"] != "auto":
        shape["tied"] = str(c["tied_embeddings"]) in ("true", "True")
    return shape


class Corpus:
    """The token ids of one part of a folder that gotrain tokenize made, all documents one after the other, and where each begins."""

    def __init__(self, folder, part):
        with open(os.path.join(folder, "dataset.json")) as f:
            manifest = json.load(f)
        part = part if part in manifest["splits"] else "train"
        kinds = {20240520: np.uint16, 20240801: np.uint32}
        ids = []
        for shard in manifest["splits"][part]["shards"]:
            path = os.path.join(folder, shard["file"])
            head = np.fromfile(path, np.int32, 256)
            ids.append(np.fromfile(path, kinds[int(head[0])], offset=1024).astype(np.int64))
            if len(ids[-1]) != shard["tokens"]:
                sys.exit(f"{path} has {len(ids[-1])} tokens, its manifest says {shard['tokens']}")
        self.ids = torch.from_numpy(np.concatenate(ids))
        tok = manifest["tokenizer"]
        self.begins = torch.zeros(len(self.ids), dtype=torch.bool)
        if tok["bos_added"]:
            self.begins |= self.ids == tok["bos"]
        elif tok["eos_added"]:
            self.begins[1:] = self.ids[:-1] == tok["eos"]
        self.begins[0] = True
        self.documents = int(self.begins.sum())

    def windows(self, seq):
        return (len(self.ids) - 1) // seq

    def batch(self, which, seq, apart):
        """Tokens and targets [B, S] of some windows, -100 where there is no target, and the mask of attention (None: causal)."""
        at = torch.as_tensor(which)[:, None] * seq + torch.arange(seq)
        last = len(self.ids) - 1
        x, y = self.ids[at.clamp(max=last)], self.ids[(at + 1).clamp(max=last)].clone()
        y[at >= last] = -100
        if not apart or self.documents == 1:
            return x, y, None
        y[(at < last) & self.begins[(at + 1).clamp(max=last)]] = -100
        segment = self.begins[at.clamp(max=last)].cumsum(1)
        return x, y, ((segment[:, :, None] == segment[:, None, :]) & torch.ones(seq, seq, dtype=torch.bool).tril())[:, None]


def rate(s, step, total):
    """The learning rate of a step, as a part of the peak."""
    warm = s["warmup_steps"]
    if step < warm:
        return (step + 1) / warm
    if s["kind"] == "constant":
        return 1.0
    return s["min_lr_ratio"] + (1 - s["min_lr_ratio"]) * 0.5 * (1 + math.cos(math.pi * min(1, (step - warm) / (total - warm))))


def logits_loss(net, batch, dtype, reduction):
    x, y, mask = batch
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bf16"):
        logits = net(x, mask)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), y.view(-1), reduction=reduction)


def evaluate(net, corpus, seq, dtype, apart, batch=16):
    total, count = 0.0, 0
    with torch.no_grad():
        n = (len(corpus.ids) - 1 + seq - 1) // seq  # the last window may be short
        for i in range(0, n, batch):
            b = corpus.batch(range(i, min(n, i + batch)), seq, apart)
            total += logits_loss(net, b, dtype, "sum").item()
            count += int((b[1] >= 0).sum())
    return total / count, count


def order(windows, batch, gen):
    """Batches of window numbers: uniform random order in each epoch, without the windows that do not fill a batch."""
    while True:
        perm = torch.randperm(windows, generator=gen)
        for i in range(0, windows - batch + 1, batch):
            yield perm[i:i + batch]


def train(seed, c, corpus, held_out, every):
    torch.manual_seed(seed)
    seq, dtype, o = c["text"]["sequence"], c["train"]["dtype"], c["optim"]
    apart, accumulate = c["text"]["documents_apart"], c["train"]["accumulate_steps"]
    batch = c["train"]["batch_per_rank"] * c["train"]["ranks"]
    net = llama_net.Llama(**shape_of(c["llama"]), seq=seq, eps=c["llama"]["norm_eps"], theta=c["llama"]["rope_theta"])
    net.init(c["llama"]["init_std"], c["llama"]["init_depth_scaled"]).train()
    params = list(net.parameters())
    groups = [{"params": [p for p in params if p.dim() >= 2], "weight_decay": o["weight_decay"]}, {"params": [p for p in params if p.dim() < 2],
        "weight_decay": 0.0}]
    opt = torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"], foreach=True)
    windows = order(corpus.windows(seq), batch * accumulate, torch.Generator().manual_seed(seed))
    begin, losses = time.time(), []
    for step in range(c["steps"]):
        for g in opt.param_groups:
            g["lr"] = o["lr"] * rate(c["schedule"], step, c["steps"])
        opt.zero_grad(set_to_none=True)
        micro = [corpus.batch(w, seq, apart) for w in next(windows).split(batch)]
        count = sum(int((b[1] >= 0).sum()) for b in micro)
        loss = 0.0
        for b in micro:
            part = logits_loss(net, b, dtype, "sum") / count
            part.backward()
            loss += part.item()
        if c["train"]["clip_norm"] > 0:
            torch.nn.utils.clip_grad_norm_(params, c["train"]["clip_norm"])
        opt.step()
        losses.append(loss)
        if every and (step + 1) % every == 0 and step + 1 < c["steps"]:
            print(f"seed {seed} step {step + 1}: loss {loss:.4f}, held-out {evaluate(net, held_out, seq, dtype, apart)[0]:.4f}", file=sys.stderr, flush=True)
    mean, tokens = evaluate(net, held_out, seq, dtype, apart)
    return {"peer": "pytorch", "version": torch.__version__, "seed": seed, "steps": c["steps"], "dtype": dtype,
        "params": sum(p.numel() for p in params), "first_loss": round(losses[0], 4),
            "last_loss": round(losses[-1], 4), "eval_loss": round(mean, 6), "perplexity": round(math.exp(mean), 4), "eval_tokens": tokens,
                "seconds": round(time.time() - begin, 1)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--recipe", required=True)
    p.add_argument("--train", required=True, help="folder of gotrain tokenize")
    p.add_argument("--eval", required=True, help="folder of gotrain tokenize; its part val, if it has one")
    p.add_argument("--seeds", "--seed", default="1", help="one or several, with commas")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for gotrain run, such as train.dtype=f32 or run.steps=100")
    p.add_argument("--threads", type=int, default=0, help="0: all cores")
    p.add_argument("--eval-every", type=int, default=0, help="held-out loss on standard error every so many steps")
    a = p.parse_args()
    if a.threads:
        torch.set_num_threads(a.threads)
    c = settings(a.recipe, a.set)
    corpus, held_out = Corpus(a.train, "train"), Corpus(a.eval, "val")
    got = []
    for seed in a.seeds.split(","):
        got.append(train(int(seed), c, corpus, held_out, a.eval_every))
        print(json.dumps(got[-1]), flush=True)
    if len(got) > 1:
        v = [r["eval_loss"] for r in got]
        print(json.dumps({"peer": "pytorch", "seeds": len(v), "eval_loss_mean": round(statistics.mean(v), 6),
            "eval_loss_sd": round(statistics.stdev(v), 6)}), flush=True)


if __name__ == "__main__":
    main()
