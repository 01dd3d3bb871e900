from cases import *

for d, gd in (("f32", "f32"), ("f32", "bf16"), ("f32", "f16"), ("bf16", "bf16"), ("f16", "f16")):
    for ams, maximize, step in ((0, 0, 0), (1, 1, 6)):
        w, m, v, g, top = rnd(3, 5, d=d), rnd(3, 5, d=d), pos(3, 5, d=d), rnd(3, 5, d=gd), pos(3, 5, d=d)
        p = D(w).clone().requires_grad_()
        opt = torch.optim.AdamW([p], 0.01, (0.9, 0.99), 1e-6, 0.1, amsgrad=bool(ams), maximize=bool(maximize))
        p.grad = D(g)
        opt.state[p] = {"step": torch.tensor(float(step)), "exp_avg": D(m).clone(), "exp_avg_sq": D(v).clone()}
        if ams:
            opt.state[p]["max_exp_avg_sq"] = D(top).clone()
        opt.step()
        st = opt.state[p]
        for sd in ("f32", "i64"):
            case("ApplyAdamWV2", IO(w, p.detach()), IO(m, st["exp_avg"]), IO(v, st["exp_avg_sq"]), IO(top, st["max_exp_avg_sq"]) if ams else N, T(g),
                 T(torch.tensor([step]).to(TYPES[sd])), f(0.01), f(0.9), f(0.99), f(0.1), f(1e-6), i(ams), i(maximize))

for d in FLOATS:
    a, b, c = [rnd(3, 4, d=d), rnd(5, d=d)], [rnd(3, 4, d=d), rnd(5, d=d)], [pos(3, 4, d=d), pos(5, d=d)]
    inn = lambda l: L(*[T(x) for x in l])
    out = lambda l: L(*[O(x, d) for x in l])
    case("ForeachAddListV2", inn(a), inn(b), S(0.5), out([D(x) + 0.5 * D(y) for x, y in zip(a, b)]), views=False)
    case("ForeachMulScalarV2", inn(a), S(0.5), out([D(x) * 0.5 for x in a]), views=False)
    case("ForeachAddcmulScalarV2", inn(a), inn(b), inn(c), S(2), out([D(x) + 2 * D(y) * D(z) for x, y, z in zip(a, b, c)]), views=False)
    case("ForeachAddcdivScalarV2", inn(a), inn(b), inn(c), S(2), out([D(x) + 2 * D(y) / D(z) for x, y, z in zip(a, b, c)]), views=False)
    case("ForeachLerpScalar", inn(a), inn(b), S(0.25), out([torch.lerp(D(x), D(y), 0.25) for x, y in zip(a, b)]), views=False)
    case("ForeachSqrt", inn(c), out([D(x).sqrt() for x in c]), views=False)
    case("ForeachZeroInplace", L(*[IO(x, x * 0) for x in a]), views=False)
    case("ForeachCopy", inn(a), out([D(x) for x in a]), views=False)
    for p in (1, 2):
        case("ForeachNorm", inn(a), S(p), out([D(x).norm(p).reshape(1) for x in a]), views=False)
    half, one = torch.tensor([0.5]), torch.tensor([1.0])
    bad = [a[0].clone(), a[1]]
    case("ForeachNonFiniteCheckAndUnscale", L(*[IO(x, D(x) * 0.5) for x in a]), IO(one * 0, one * 0), T(half), views=False)
    bad[0][1, 2] = float("inf")
    case("ForeachNonFiniteCheckAndUnscale", L(*[IO(x, D(x) * 0.5) for x in bad]), IO(one * 0, one), T(half), views=False)

# A bit per element, from the lowest; 1 keeps.
for d in FLOATS:
    x = rnd(3, 5, d=d)
    keep = torch.rand(15) > 0.4
    b = torch.zeros(16, dtype=torch.uint8)
    for j in range(15):
        b[j // 8] |= int(keep[j]) << (j % 8)
    case("DropoutDoMask", T(x), T(b), f(0.25), O(torch.where(keep.reshape(3, 5), D(x) / 0.75, 0.0), d))
