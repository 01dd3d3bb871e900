from cases import *

for d in FLOATS:
    x, g = rnd(3, 4, 5, d=d), rnd(3, 4, 5, d=d)
    for axis in (-1, 1):
        for op, fn in (("Softmax", F.softmax), ("LogSoftmax", F.log_softmax)):
            z = D(x).requires_grad_()
            y = fn(z, axis)
            case(op, T(x), i(axis), O(y, d))
            kept = y.detach().to(TYPES[d])
            s_ = D(kept)
            back = s_ * (D(g) - (D(g) * s_).sum(axis, True)) if op == "Softmax" else D(g) - s_.exp() * D(g).sum(axis, True)
            case(op + "Backward", T(g), T(kept), i(axis), O(back, d))
    x, m = rnd(2, 3, 4, 5, d=d), torch.rand(2, 1, 4, 5) > 0.6
    y = F.softmax(torch.where(m, -10000.0, D(x) * 0.5), -1)
    case("ScaledMaskedSoftmax", T(x), T(m), f(0.5), i(0), O(y, d, plain=True))
    kept, g = y.to(TYPES[d]), rnd(2, 3, 4, 5, d=d)
    s_ = D(kept)
    back = torch.where(m, 0.0, 0.5 * s_ * (D(g) - (D(g) * s_).sum(-1, True)))
    case("ScaledMaskedSoftmaxBackward", T(g), T(kept), T(m), f(0.5), i(0), O(back, d, plain=True))

    # Rows whose class is ignored count for nothing.
    x, t = rnd(5, 7, d=d), torch.tensor([3, -100, 0, 6, 2])
    w = pos(7, d=d)
    logp = F.log_softmax(D(x), 1).to(TYPES[d])
    for red, name in enumerate(("none", "mean", "sum")):
        z = D(logp).requires_grad_()
        y = F.nll_loss(z, t, D(w), reduction=name)
        total = D(w)[t[t >= 0]].sum()
        case("NLLLoss", T(logp), T(t), T(w), i(red), i(-100), O(y.reshape(-1), d), O(total.reshape(1), d))
        g = rnd(*(y.reshape(-1).shape), d=d)
        y.backward(D(g) if red == 0 else D(g)[0])
        kept = total.reshape(1).to(TYPES[d])
        want = z.grad * (total / D(kept)) if name == "mean" else z.grad
        case("NLLLossBackward", T(g), T(logp), T(t), T(w), i(red), i(-100), T(kept), O(want, d))
        for smooth in (0, 0.1):
            wf = pos(7)
            y = F.cross_entropy(D(x), t, D(wf), reduction=name, label_smoothing=smooth)
            junk = {"k": "T", "_w": torch.zeros(1), "_d": d, "_plain": True, "_unread": True, "fmt": None}
            case("CrossEntropyLoss", T(x), T(t), T(wf), s(name), i(-100), f(smooth), f(0), i(0), O(y.reshape(-1), d), O(F.log_softmax(D(x), 1), d), junk, junk)
        z = D(x).requires_grad_()
        F.cross_entropy(z, t, reduction=name).backward(D(g) if red == 0 else D(g)[0])
        case("CrossEntropyLossGrad", T(g), T(F.log_softmax(D(x), 1).to(TYPES[d])), T(t), N, N, N, s(name), i(-100), f(0), f(0),
             O(z.grad, d, tol={"f32": 1e-5, "bf16": 2.0 ** -6, "f16": 2.0 ** -8}[d]))
