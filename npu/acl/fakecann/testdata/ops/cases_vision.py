from cases import *


def four(p):
    return [p[0], p[1], p[2], p[3]]


for d in FLOATS:
    for x, w, stride, pad, dil, g in (((2, 3, 7, 6), (4, 3, 3, 3), (2, 1), (1, 1), (1, 1), 1), ((2, 4, 5, 5), (6, 2, 3, 2), (1, 2), (0, 1, 2, 1), (1, 2), 2),
                                      ((2, 3, 4, 4), (5, 3, 1, 1), (1, 1), (0, 0), (1, 1), 1)):
        x, w = rnd(*x, d=d), rnd(*w, d=d)
        b = rnd(w.shape[0], d=d)
        full = four(pad) if len(pad) == 4 else [pad[0], pad[0], pad[1], pad[1]]
        z, v, c = D(x).requires_grad_(), D(w).requires_grad_(), D(b).requires_grad_()
        y = F.conv2d(F.pad(z, [full[2], full[3], full[0], full[1]]), v, c, stride, 0, dil, g)
        arrays = [I(*stride), I(*pad), I(*dil), i(0), I(0, 0), i(g)]
        case("Convolution", T(x, "nchw"), T(w, "nchw"), T(b), *arrays, O(y, d, "nchw"), i(0))
        y0 = F.conv2d(F.pad(z, [full[2], full[3], full[0], full[1]]), v, None, stride, 0, dil, g)
        case("Convolution", T(x, "nchw"), T(w, "nchw"), N, *arrays, O(y0, d, "nchw"), i(0))
        dy = rnd(*y.shape, d=d)
        y.backward(D(dy))
        head = [T(dy, "nchw"), T(x, "nchw"), T(w, "nchw"), I(w.shape[0]), *arrays]
        case("ConvolutionBackward", *head, B(1, 1, 1), i(0), O(z.grad, d, "nchw"), O(v.grad, d, "nchw"), O(c.grad, d))
        case("ConvolutionBackward", *head, B(1, 0, 0), i(0), O(z.grad, d, "nchw"), N, N)
        dw = v.grad
        if g > 1 and d != "f32":
            dw = dw.to(torch.float16).float()
        case("ConvolutionBackward", *head, B(0, 1, 0), i(0), N, O(dw, "f32", "nchw", tol=1e-5), N)
    x, w = rnd(2, 3, 9, d=d), rnd(4, 3, 3, d=d)
    y = F.conv1d(D(x), D(w), None, 2, 1)
    case("Convolution", T(x, "ncl"), T(w, "ncl"), N, I(2), I(1), I(1), i(0), I(0), i(1), O(y, d, "ncl"), i(0))

    # BatchNorm. saveInvstd is the biased variance on A2, 1/std on 950.
    x = rnd(3, 4, 2, 5, d=d)
    gamma, beta, rm, rv = rnd(4), rnd(4), rnd(4), pos(4)
    z, ga, be = D(x).requires_grad_(), D(gamma).requires_grad_(), D(beta).requires_grad_()
    m, v = D(rm).clone(), D(rv).clone()
    y = F.batch_norm(z, m, v, ga, be, True, 0.1, 1e-5)
    mean, var = D(x).mean([0, 2, 3]), D(x).var([0, 2, 3], unbiased=False)
    for soc, saved in ((1, var), (3, (var + 1e-5).rsqrt())):
        case("BatchNorm", T(x, "nchw"), T(gamma), T(beta), IO(rm, m), IO(rv, v), i(1), f(0.1), f(1e-5), O(y, d, "nchw"), O(mean, "f32"), O(saved,
            "f32"), soc=soc)
    t = F.batch_norm(D(x), D(rm), D(rv), ga, be, False, 0.1, 1e-5)
    case("BatchNorm", T(x, "nchw"), T(gamma), T(beta), T(rm), T(rv), i(0), f(0.1), f(1e-5), O(t, d, "nchw"), N, N)
    dy = rnd(*x.shape, d=d)
    y.backward(D(dy))
    for soc, saved in ((2, var), (3, (var + 1e-5).rsqrt())):
        case("BatchNormBackward", T(dy, "nchw"), T(x, "nchw"), T(gamma), T(rm), T(rv), T(mean.float()), T(saved.float()), i(1), f(1e-5), B(1, 1, 1),
             O(z.grad, d, "nchw"), O(ga.grad, "f32"), O(be.grad, "f32"), soc=soc)
    z2, g2, b2 = D(x).requires_grad_(), D(gamma).requires_grad_(), D(beta).requires_grad_()
    F.batch_norm(z2, D(rm), D(rv), g2, b2, False, 0.1, 1e-5).backward(D(dy))
    case("BatchNormBackward", T(dy, "nchw"), T(x, "nchw"), T(gamma), T(rm), T(rv), N, N, i(0), f(1e-5), B(1, 1, 1), O(z2.grad, d, "nchw"), O(g2.grad,
        "f32"), O(b2.grad, "f32"))
    r = (var + 1e-5).rsqrt()
    xmu = D(x) - mean[None, :, None, None]
    sdy, sdx = D(dy).sum([0, 2, 3]), (D(dy) * xmu).sum([0, 2, 3])
    case("BatchNormStats", T(x, "nchw"), f(1e-5), O(mean, "f32"), O(r, "f32"))
    case("BatchNormElemt", T(x, "nchw"), T(gamma), T(beta), T(mean.float()), T(r.float()), f(1e-5), O(y, d, "nchw"))
    case("BatchNormReduceBackward", T(dy, "nchw"), T(x, "nchw"), T(mean.float()), T(r.float()), T(gamma), i(1), i(1), i(1), O(sdy, "f32"), O(sdx,
        "f32"), O(sdx * r, "f32"), O(sdy, "f32"))
    case("BatchNormElemtBackward", T(dy, "nchw"), T(x, "nchw"), T(mean.float()), T(r.float()), T(gamma), T(sdy.float()), T(sdx.float()),
         T(torch.tensor([10, 20], dtype=torch.int32)), O(z.grad, d, "nchw"))

    # Pools.
    for k, st, p, ceil in (((3, 3), (2, 2), (1, 1), 0), ((2, 3), (2, 1), (0, 1), 1), ((2, 2), (2, 2), (0, 0), 0)):
        x = torch.randperm(2 * 3 * 7 * 5).reshape(2, 3, 7, 5).to(torch.float32)
        x = ((x - 100) / 4 if d != "bf16" else (x - 100)).to(TYPES[d])
        z = D(x).requires_grad_()
        y, idx = F.max_pool2d(z, k, st, p, 1, bool(ceil), return_indices=True)
        tail = [I(*k), I(*st), I(*p), I(1, 1), i(ceil)]
        case("MaxPool2dWithIndices", T(x, "nchw"), *tail, O(y, d, "nchw"), O(idx.int(), "i32"))
        dy = rnd(*y.shape, d=d)
        y.backward(D(dy))
        unread = {"k": "T", "_w": torch.zeros(2, 3, 7, 5), "_d": d, "_plain": True, "_unread": True, "fmt": "nchw"}
        case("MaxPool2dWithIndicesBackward", T(dy, "nchw"), unread, T(idx.int()), *tail, O(z.grad, d, "nchw"))
        if not ceil:
            # The mask form: a byte per place in the window and output, the format is the fake's own.
            p_out = y.shape[2] * y.shape[3]
            mask = torch.full((2, 3, k[0] * k[1], ((p_out + 15) // 16 + 1) * 32), 0x25, dtype=torch.int8)
            oy, ox = torch.arange(y.shape[2])[:, None], torch.arange(y.shape[3])[None, :]
            place = (idx // 5 - (oy * st[0] - p[0])) * k[1] + idx % 5 - (ox * st[1] - p[1])
            mask[..., :p_out].scatter_(2, place.reshape(2, 3, 1, p_out), 0x5A)
            unwanted = {"k": "T", "_w": mask, "_d": "i8", "_plain": True, "_unread": True, "fmt": "nchw"}
            case("MaxPool2dWithMask", T(x, "nchw"), *tail, O(y, d, "nchw"), unwanted)
            case("MaxPool2dWithMaskBackward", T(dy, "nchw"), unread, T(mask, plain=True), *tail, O(z.grad, d, "nchw"))
        for pad_counts in (0, 1):
            z = D(x).requires_grad_()
            y = F.avg_pool2d(z, k, st, p, bool(ceil), bool(pad_counts))
            dy = rnd(*y.shape, d=d)
            y.backward(D(dy))
            tail2 = [I(*k), I(*st), I(*p), i(ceil), i(pad_counts), i(0), i(0)]
            case("AvgPool2d", T(x, "nchw"), *tail2, O(y, d, "nchw"))
            case("AvgPool2dBackward", T(dy, "nchw"), T(x, "nchw"), *tail2, O(z.grad, d, "nchw"))
    x = ints(0, 3, 2, 3, 6, 6, d=d)  # ties: the first of the window counts
    y, idx = F.max_pool2d(D(x), 3, 2, 1, return_indices=True)
    case("MaxPool2dWithIndices", T(x, "nchw"), I(3, 3), I(2, 2), I(1, 1), I(1, 1), i(0), O(y, d, "nchw"), O(idx.int(), "i32"))
    x = rnd(2, 3, 7, 5, d=d)
    for size in ((1, 1), (3, 2)):
        z = D(x).requires_grad_()
        y = F.adaptive_avg_pool2d(z, size)
        dy = rnd(*y.shape, d=d)
        y.backward(D(dy))
        case("AdaptiveAvgPool2d", T(x, "nchw"), I(*size), O(y, d, "nchw"))
        case("AdaptiveAvgPool2dBackward", T(dy, "nchw"), T(x, "nchw"), O(z.grad, d, "nchw"))

# One value per channel: A2 has 0 for the unbiased variance, 950 NaN.
x, one = rnd(1, 3), torch.ones(3)
for soc, var in ((1, 0.9 * one), (3, one * math.nan)):
    saved = one * 0 if soc == 1 else one / math.sqrt(1e-5)
    case("BatchNorm", T(x), N, T(one), IO(one, 0.9 * one + 0.1 * x[0]), IO(one, var), i(1), f(0.1), f(1e-5), O(x * 0 + 1), O(x[0]), O(saved), soc=soc)
