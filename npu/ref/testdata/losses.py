"""Cases of the losses with dense targets; make_fixtures.py calls add."""

import numpy as np
import torch
import torch.nn.functional as F


def add(m):
    rand, case, raw = m.rand, m.case, m.raw
    rng = np.random.default_rng(11)

    def one_hot(name, labels, classes, on=1.0, off=0.0, weights=None, ignore=-100):
        y = torch.tensor(labels)
        hot = F.one_hot(y.clamp(0, classes - 1), classes).double()
        t = hot * on + (1 - hot) * off
        w = torch.ones(classes, dtype=torch.float64) if weights is None else torch.tensor(weights, dtype=torch.float64)
        valid = (y != ignore).double()
        attrs = {"classes": classes, "on": on, "off": off, "ignore_index": ignore}
        if weights is not None:
            attrs["weights"] = weights
        n = "one_hot/" + name
        raw(n, "one_hot", attrs, [(n + "/labels", np.array(labels, np.int32))],
            [(n + "/y", t * w * valid[:, None]), (n + "/rows", w[y.clamp(0, classes - 1)] * valid)])

    one_hot("plain", [0, 3, 1, 1], 4)
    one_hot("smoothed_ignored", [2, -100, 0], 3, on=0.9 + 0.1 / 3, off=0.1 / 3)
    one_hot("weights", [2, 0, -7, 1], 3, weights=[0.5, 2.0, 1.25], ignore=-7)

    def soft(name, logits, target, dloss=1.0, want=None):
        n = "soft_cross_entropy/" + name
        target = np.asarray(target, np.float32)
        count = float((target.sum(1) != 0).sum())

        def f(z, t):
            return F.cross_entropy(z, t, reduction="sum"), torch.tensor(count), torch.logsumexp(z, 1)
        _, y, _, d = case(n, "soft_cross_entropy", {}, f, {"logits": logits, "target": target}, ("loss", "count", "lse"), diff=["logits"],
                          dout={"loss": np.float32(dloss)})
        raw(n + "/bwd", "soft_cross_entropy_bwd", {},
            [(n + "/logits", logits), (n + "/target", target), (n + "/lse", y["lse"]), (n + "/dloss", np.float32(dloss))], [(n + "/dlogits", d["logits"])])
        return y["loss"], d["logits"]

    p = rng.dirichlet(np.ones(7), 5)
    soft("probabilities", rand(5, 7), p, 0.5)
    p[2] = 0
    soft("a_row_of_zeros", rand(5, 7), p)
    soft("not_normalised", rand(4, 3), rng.random((4, 3)) * 2)
    # What the composition of one_hot and this kind must give: weighted labels with smoothing, as PyTorch's CrossEntropyLoss has them.
    z, labels, w, eps = rand(5, 3), [2, 0, -100, 1, 1], np.array([0.5, 2.0, 1.25]), 0.1
    hot = np.zeros((5, 3))
    for r, y in enumerate(labels):
        if y >= 0:
            hot[r] = eps / 3 * w
            hot[r, y] += (1 - eps) * w[y]
    ours, grad = soft("weighted_labels", z, hot)
    zt = torch.tensor(z, dtype=torch.float64, requires_grad=True)
    theirs = F.cross_entropy(zt, torch.tensor(labels), torch.tensor(w), reduction="sum", label_smoothing=eps)
    theirs.backward()
    assert abs(float(theirs) - float(ours)) < 1e-6 and np.allclose(zt.grad.numpy(), grad.numpy(), atol=1e-6), "weights and smoothing"

    def elements(kind, name, x, target, f, weight=None, dloss=1.0, **attrs):
        n = f"{kind}/{name}"
        attrs = {"weighted": weight is not None, **attrs}
        ins = {"x": x, "target": np.asarray(target, np.float32)}
        if weight is not None:
            ins["weight"] = np.asarray(weight, np.float32)

        def loss(x, t, w=None):
            each = f(x, t).flatten(1).sum(1) if x.dim() > 1 else f(x, t)
            return (each if w is None else each * w).sum(), torch.tensor(float(len(x))) if w is None else w.sum()
        diff = ["x", "target"] if kind == "mse" else ["x"]
        _, y, _, d = case(n, kind, attrs, loss, ins, ("loss", "count"), diff=diff, dout={"loss": np.float32(dloss)})
        raw(n + "/bwd", kind + "_bwd", attrs, [(f"{n}/{k}", v) for k, v in ins.items()] + [(n + "/dloss", np.float32(dloss))], [(n + "/dx", d["x"])])

    def bce(pos=None):
        pos = None if pos is None else torch.tensor(pos, dtype=torch.float64)
        return lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="none", pos_weight=pos)

    t = rng.choice([0.0, 1.0, 0.3], (4, 9))
    elements("bce", "plain", rand(4, 9), t, bce())
    elements("bce", "wide_range", rand(4, 9, scale=40.0), t, bce(), dloss=0.25)
    elements("bce", "pos_weight", rand(4, 9), t, bce([1.0 + i / 4 for i in range(9)]), pos_weight=[1.0 + i / 4 for i in range(9)])
    elements("bce", "one_pos_weight_rows", rand(4, 3, 2), rng.random((4, 3, 2)), bce([2.5]), weight=[1, 0, 0.5, 2], pos_weight=[2.5])
    elements("bce", "vector", rand(5), [0, 1, 1, 0, 0.5], bce())
    square = lambda x, t: F.mse_loss(x, t, reduction="none")
    elements("mse", "plain", rand(4, 9), rand(4, 9), square)
    elements("mse", "rows", rand(4, 3, 2), rand(4, 3, 2), square, weight=[1, 0, 0.5, 2], dloss=0.125)
    elements("mse", "vector", rand(6), rand(6), square)
