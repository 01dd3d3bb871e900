from cases import *


def rms(x, g, eps):
    r = (x.pow(2).mean(-1, True) + eps).rsqrt()
    return x * r * g, r


for d in FLOATS:
    for gd in sorted({d, "f32"}):
        x, g, dy = rnd(3, 4, 6, d=d), rnd(6, d=gd), rnd(3, 4, 6, d=d)
        z, w = D(x).requires_grad_(), D(g).requires_grad_()
        y, r = rms(z, w, 1e-5)
        case("RmsNorm", T(x), T(g), f(1e-5), O(y, d), O(r, "f32"))
        y.backward(D(dy))
        for shape in ((3, 4, 1), (3, 4)):
            case("RmsNormGrad", T(dy), T(x), T(r.detach().float().reshape(shape)), T(g), O(z.grad, d), O(w.grad, "f32"))
    x, x2, g = rnd(3, 4, 6, d=d), rnd(3, 4, 6, d=d), rnd(6, d=d)
    total = (D(x) + D(x2)).to(TYPES[d])
    y, r = rms(D(total), D(g), 1e-6)
    case("AddRmsNorm", T(x), T(x2), T(g), f(1e-6), O(y, d), O(r, "f32"), O(total, d))

    for dim, shape in ((-1, (3, 4, 6)), (0, (10,)), (1, (2, 4, 3))):
        x = rnd(*shape, d=d)
        z = D(x).requires_grad_()
        a, b = z.chunk(2, dim)
        y = F.silu(a) * b
        dy = rnd(*y.shape, d=d)
        y.backward(D(dy))
        case("SwiGlu", T(x), i(dim), O(y, d), views=False)
        case("SwiGluGrad", T(dy), T(x), i(dim), O(z.grad, d), views=False)

    def turned(x, cos, sin, mode):
        if mode == 0:
            a, b = x.chunk(2, -1)
            return x * cos + torch.cat([-b, a], -1) * sin
        a, b = x[..., ::2], x[..., 1::2]
        return x * cos + torch.stack([-b, a], -1).flatten(-2) * sin

    for mode in (0, 1):
        for b in (1, 2) if mode == 0 else (1,):
            x, cos, sin = rnd(2, 5, 3, 8, d=d), rnd(b, 5, 1, 8, d=d), rnd(b, 5, 1, 8, d=d)
            z, c_, s_ = D(x).requires_grad_(), D(cos).requires_grad_(), D(sin).requires_grad_()
            y = turned(z, c_, s_, mode)
            case("RotaryPositionEmbedding", T(x), T(cos), T(sin), i(mode), O(y, d))
            dy = rnd(2, 5, 3, 8, d=d)
            y.backward(D(dy))
            case("RotaryPositionEmbeddingGrad", T(dy), T(cos), T(sin), T(x), i(mode), O(z.grad, d), O(c_.grad, d), O(s_.grad, d))
            case("RotaryPositionEmbeddingGrad", T(dy), T(cos), T(sin), N, i(mode), O(z.grad, d), N, N)
    q, k, cos, sin = rnd(1, 2, 2, 128, d=d), rnd(1, 2, 1, 128, d=d), rnd(1, 2, 1, 128, d=d), rnd(1, 2, 1, 128, d=d)
    case("ApplyRotaryPosEmb", IO(q, turned(D(q), D(cos), D(sin), 0)), IO(k, turned(D(k), D(cos), D(sin), 0)), T(cos), T(sin), i(1))

FAR = 2147483647
triangle = torch.ones(2048, 2048, dtype=torch.bool).triu(1)


def attention(d, layout, b, h, g, s, t, dim, mode, mask=None, full=None, pre=FAR, nxt=FAR, views=True, pack=False):
    """full: the mask that counts, [B,1|N,S,T]."""
    def arrange(x):  # from BNSD
        if layout == "BNSD":
            return x
        x = x.permute(0, 2, 1, 3)
        return x if layout == "BSND" else x.flatten(2) if layout == "BSH" else x.flatten(2).permute(1, 0, 2)

    scale = 1 / math.sqrt(dim)
    q, k, v, do = rnd(b, h, s, dim, d=d), rnd(b, g, t, dim, d=d), rnd(b, g, t, dim, d=d), rnd(b, h, s, dim, d=d)
    zq, zk, zv = D(q), D(k), D(v)
    sc = zq @ zk.repeat_interleave(h // g, 1).transpose(-1, -2) * scale
    if full is not None:
        sc = sc.masked_fill(full, -float("inf"))
    m = sc.max(-1, True)[0].detach()
    total = (sc - m).exp().sum(-1, True)
    o = (sc - m).exp() / total @ zv.repeat_interleave(h // g, 1)
    lanes = [m.expand(b, h, s, 8), total.expand(b, h, s, 8)]
    tail = [f(scale), f(1), i(pre), i(nxt), i(h), s_(layout), i(0), i(mode)]
    mk = N if mask is None else T(mask, plain=True)
    # Layouts that hide the heads need the last dim whole.
    case("FlashAttentionScore", T(arrange(q)), T(arrange(k)), T(arrange(v)), N, N, N, mk, N, *tail, O(lanes[0], "f32", plain=True),
         O(lanes[1], "f32", plain=True), N, O(arrange(o), d), views=views)
    o16 = o.detach().to(TYPES[d])
    # The gradient takes Σ o·do from the o that forward rounded.
    p, kr, vr = (sc - m).exp().detach() / total.detach(), D(k).repeat_interleave(h // g, 1), D(v).repeat_interleave(h // g, 1)
    ds = p * (D(do) @ vr.transpose(-1, -2) - (D(do) * D(o16)).sum(-1, True))
    group = lambda x: x.reshape(b, g, h // g, t, dim).sum(2)
    dq, dk, dv = scale * ds @ kr, group(scale * ds.transpose(-1, -2) @ D(q)), group(p.transpose(-1, -2) @ D(do))
    for max_, sum_ in (lanes, [m + total.log(), torch.ones_like(total)]):
        case("FlashAttentionScoreGrad", T(arrange(q)), T(arrange(k)), T(arrange(v)), T(arrange(do)), N, N, N, mk,
             T(max_.expand(b, h, s, 8).float().contiguous(), plain=True), T(sum_.detach().expand(b, h, s, 8).float().contiguous(),
                 plain=True), N, T(arrange(o16)),
             N, *tail, O(arrange(dq), d), O(arrange(dk), d), O(arrange(dv), d), N, views=views)


s_ = s
for d in FLOATS:
    attention(d, "BSND", 2, 4, 2, 5, 5, 8, 0)
    seg = (torch.rand(2, 1, 5, 5) > 0.5) & ~torch.eye(5, dtype=torch.bool)
    attention(d, "BSND", 2, 4, 2, 5, 5, 8, 0, seg, seg)
    band = torch.zeros(5, 7, dtype=torch.bool)
    far = torch.tensor([[t - s > 2 or s - t > 1 for t in range(7)] for s in range(5)])
    attention(d, "BNSD", 1, 2, 2, 5, 7, 4, 0, band, far, pre=1, nxt=2)
for layout in ("BSND", "BNSD", "BSH", "SBH"):
    attention("bf16", layout, 2, 2, 1, 4, 6, 8, 1, torch.ones(4, 6, dtype=torch.bool).triu(3), torch.ones(4, 6, dtype=torch.bool).triu(3), views=False)
# The compressed triangle is 4 MB: one case for each mode, in one dtype, by name.
for mode, shift in ((2, 0), (3, 66)):
    full = torch.ones(70, 136, dtype=torch.bool).triu(1 + shift)
    attention("bf16", "BSND", 1, 2, 1, 70, 136, 4, mode, "triangle", full, views=False)
