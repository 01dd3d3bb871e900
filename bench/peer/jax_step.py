#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""The peer: training steps of ResNet-50 or of a Llama in JAX on the CPU, one process, on synthetic data.

    python3 jax_step.py --shape resnet50 --threads 2 --batch 16 --dtype f32
    python3 jax_step.py --shape stories15M --threads 2 --batch 8 --dtype bf16

A step is one jitted function: loss, gradients, SGD with momentum and weight decay (ResNet-50) or AdamW (Llama), weights and state donated. bf16: weights,
norms, loss and optimizer in float32, products and convolutions in bfloat16, as torch.autocast does. Prints the JSON line of resnet_torch.py.
Only world 1: JAX has no DDP on the CPU. XLA takes as many threads as the process has processors, so it is bound to as many as --threads says.
"""
import argparse, json, math, os, resource, statistics, time

START = time.time()
SHAPES = {  # dim, hidden, layers, heads, vocab, tied
    "stories15M": (288, 768, 6, 6, 32000, True),
    "d512": (512, 1376, 8, 8, 32000, False),
    "tiny": (64, 172, 2, 4, 512, True),
}
p = argparse.ArgumentParser()
p.add_argument("--shape", default="resnet50", choices=["resnet50", *SHAPES])
p.add_argument("--world", type=int, default=1, choices=(1,))
p.add_argument("--threads", type=int, default=1)
p.add_argument("--batch", type=int, default=16)
p.add_argument("--seq", type=int, default=256)
p.add_argument("--size", type=int, default=224, help="pixels of a side")
p.add_argument("--dtype", choices=("f32", "bf16"), default="f32")
p.add_argument("--warm", type=int, default=4)
p.add_argument("--steps", type=int, default=8)
a = p.parse_args()
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:a.threads])  # before XLA makes its pool of threads
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", os.path.expanduser("~/.cache/gotrain-bench/jax"))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

compute = jnp.bfloat16 if a.dtype == "bf16" else jnp.float32


def normal(key, shape, std):
    return std * jax.random.normal(key, shape, jnp.float32)


class Keys:
    def __init__(self):
        self.key = jax.random.PRNGKey(0)

    def __call__(self):
        self.key, k = jax.random.split(self.key)
        return k


# ResNet-50, NHWC: parameters are a list, taken in the order in which the network asks for them.
def resnet_layers():
    yield 7, 3, 64, 2
    c = 64
    for i, n in enumerate((3, 4, 6, 3)):
        w = 64 << i
        for j in range(n):
            s = 2 if i and j == 0 else 1
            yield 1, c, w, 1
            yield 3, w, w, s
            yield 1, w, 4 * w, 1
            if j == 0:
                yield 1, c, 4 * w, s
            c = 4 * w


def resnet_init(key):
    convs = [dict(w=normal(key(), (k, k, i, o), math.sqrt(2 / (k * k * o))), g=jnp.ones(o), b=jnp.zeros(o)) for k, i, o, _ in resnet_layers()]
    return dict(convs=convs, fc=normal(key(), (2048, 1000), 0.01), bias=jnp.zeros(1000))


def resnet_loss(params, x, y):
    layers = iter(zip(params["convs"], resnet_layers()))

    def conv(x):
        q, (k, _, _, s) = next(layers)
        pad = k // 2
        y = jax.lax.conv_general_dilated(x.astype(compute), q["w"].astype(compute), (s, s), [(pad, pad)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        f = y.astype(jnp.float32)
        mean = f.mean((0, 1, 2))
        scale = q["g"] * jax.lax.rsqrt((f * f).mean((0, 1, 2)) - mean * mean + 1e-5)
        return (f * scale + (q["b"] - mean * scale)).astype(compute)
    x = jax.nn.relu(conv(x))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), [(0, 0), (1, 1), (1, 1), (0, 0)])
    for i, n in enumerate((3, 4, 6, 3)):
        for j in range(n):
            h = jax.nn.relu(conv(x))
            h = jax.nn.relu(conv(h))
            h = conv(h)
            x = jax.nn.relu(h + (conv(x) if j == 0 else x))
    x = x.astype(jnp.float32).mean((1, 2))
    return cross_entropy((x.astype(compute) @ params["fc"].astype(compute)).astype(jnp.float32) + params["bias"], y)


def cross_entropy(logits, y):
    return (jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, y[..., None], -1)[..., 0]).mean()


def llama_init(key):
    dim, hidden, layers, _, vocab, tied = SHAPES[a.shape]
    back = 0.02 / math.sqrt(2 * layers)
    blocks = [dict(n1=jnp.ones(dim), n2=jnp.ones(dim), q=normal(key(), (dim, dim), 0.02), k=normal(key(), (dim, dim), 0.02), v=normal(key(), (dim, dim), 0.02),
                   o=normal(key(), (dim, dim), back), gate=normal(key(), (dim, hidden), 0.02), up=normal(key(), (dim, hidden), 0.02),
                   down=normal(key(), (hidden, dim), back)) for _ in range(layers)]
    params = dict(embed=normal(key(), (vocab, dim), 0.02), norm=jnp.ones(dim), blocks=blocks)
    return params if tied else dict(params, head=normal(key(), (vocab, dim), 0.02))


def llama_loss(params, x, y):
    dim, _, _, heads, _, _ = SHAPES[a.shape]
    s, head = x.shape[1], dim // heads
    angle = jnp.outer(jnp.arange(s), 1e4 ** (-jnp.arange(0, head, 2) / head))
    cos, sin = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]

    def norm(x, g):
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * g

    def mul(x, w):
        return (x.astype(compute) @ w.astype(compute)).astype(jnp.float32)

    def rotate(x):
        u, v = jnp.split(x, 2, -1)
        return jnp.concatenate((u * cos - v * sin, u * sin + v * cos), -1)
    h = params["embed"][x]
    for b in params["blocks"]:
        z = norm(h, b["n1"])
        q, k, v = (mul(z, b[n]).reshape(*x.shape, heads, head) for n in "qkv")
        q, k, v = (t.astype(compute) for t in (rotate(q), rotate(k), v))
        h = h + mul(jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(h.shape), b["o"])
        z = norm(h, b["n2"])
        h = h + mul(jax.nn.silu(mul(z, b["gate"])) * mul(z, b["up"]), b["down"])
    head_w = params.get("head", params["embed"])
    return cross_entropy(mul(norm(h, params["norm"]), head_w.T), y)


def sgd(w, g, m, v, t):
    m = 0.9 * m + g + 1e-4 * w
    return w - 0.01 * m, m, v


def adamw(w, g, m, v, t):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w * (1 - 3e-4 * 0.01) - 3e-4 * (m / (1 - 0.9 ** t)) / (jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-8), m, v


images = a.shape == "resnet50"
init, lossf, update = (resnet_init, resnet_loss, sgd) if images else (llama_init, llama_loss, adamw)


def step(params, m, v, t, x, y):
    loss, grads = jax.value_and_grad(lossf)(params, x, y)
    out = jax.tree.map(lambda *z: update(*z, t), params, grads, m, v)
    new = [jax.tree.map(lambda z, i=i: z[i], out, is_leaf=lambda z: isinstance(z, tuple)) for i in range(3)]
    return loss, *new


key = Keys()
params = init(key)
m, v = jax.tree.map(jnp.zeros_like, params), jax.tree.map(lambda w: jnp.zeros(() if images else w.shape), params)
if images:
    x, y = jax.random.normal(key(), (a.batch, a.size, a.size, 3)), jax.random.randint(key(), (a.batch,), 0, 1000)
else:
    tokens = jax.random.randint(key(), (a.batch, a.seq + 1), 0, SHAPES[a.shape][4])
    x, y = tokens[:, :-1], tokens[:, 1:]
jitted = jax.jit(step, donate_argnums=(0, 1, 2))
losses, times, first = [], [], 0.0
for i in range(a.warm + a.steps):
    t0 = time.perf_counter()
    loss, params, m, v = jitted(params, m, v, jnp.float32(i + 1), x, y)
    losses.append(loss.item())
    jax.block_until_ready(params)
    times.append(time.perf_counter() - t0)
    first = first or time.time() - START
n, times = a.batch * (1 if images else a.seq), times[a.warm:]
rate, unit, med = n / statistics.median(times), "img_s" if images else "tok_s", statistics.median(times)
print(json.dumps({
    "peer": "jax", "version": jax.__version__, "model": a.shape, "world": 1, "threads": a.threads, "batch": a.batch, "dtype": a.dtype, unit: round(rate, 3),
    unit + "_best": round(n / min(times), 3), "step_ms": round(med * 1e3, 1), "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    "first_step_s": round(first, 2), "loss_first": round(losses[0], 4), "loss_last": round(losses[-1], 4)}), flush=True)
