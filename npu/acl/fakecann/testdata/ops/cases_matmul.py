from cases import *

for d in FLOATS:
    for m, k, n in ((3, 4, 5), (7, 300, 18)):
        a, b = rnd(m, k, d=d), rnd(k, n, d=d)
        y = D(a) @ D(b)
        if d == "f32" or k < 100:
            case("Mm", T(a), T(b), O(y, d), i(0))
        if k < 100:
            case("Mm", {"k": "T", "_t": a.t().contiguous().t(), "_plain": True}, {"k": "T", "_t": b.t().contiguous().t(), "_plain": True}, O(y, d),
                i(0), views=False)
            bias, s2 = rnd(n, d=d), rnd(m, n, d=d)
            case("Addmm", T(bias), T(a), T(b), S(1), S(1), O(y + D(bias), d), i(0))
            case("Addmm", T(s2), T(a), T(b), S(0.5), S(2), O(2 * y + 0.5 * D(s2), d), i(0))
            case("InplaceAddmm", IO(s2, y + D(s2)), T(a), T(b), S(1), S(1), i(0))
    if d != "f32":
        a, b = rnd(3, 8, d=d), rnd(8, 5, d=d)
        case("Mm", T(a), T(b), O((D(a) @ D(b)).float(), "f32"), i(0), cann=90)
        case("Mm", T(a), T(b), O((D(a) @ D(b)).to(TYPES[d]).float(), "f32", tol=2e-7), i(0), cann=81)
    a, b = rnd(2, 3, 4, d=d), rnd(2, 4, 5, d=d)
    case("BatchMatMul", T(a), T(b), O(D(a) @ D(b), d), i(0))
    c = rnd(2, 3, 5, d=d)
    case("Baddbmm", T(c), T(a), T(b), S(1), S(0.5), O(D(c) + 0.5 * (D(a) @ D(b)), d), i(0))
    for sa, sb in (((4,), (4,)), ((4,), (4, 3)), ((2, 3, 4), (4,)), ((2, 1, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5))):
        a, b = rnd(*sa, d=d), rnd(*sb, d=d)
        case("Matmul", T(a), T(b), O(D(a) @ D(b), d), i(0))
# HF32: operands keep 12 bits of mantissa.
a = torch.tensor([[1 + 2.0 ** -14]])
case("Mm", T(a), T(a), O(torch.ones(1, 1), tol=1e-7), i(1))

case("Mm", T(torch.zeros(0, 3)), T(rnd(3, 2)), O(torch.zeros(0, 2)), i(0), views=False)
case("Mm", T(torch.zeros(2, 0)), T(torch.zeros(0, 4)), O(torch.zeros(2, 4)), i(0), views=False)
