from cases import *

UNARY = {"Neg": torch.neg, "Exp": torch.exp, "Log": torch.log, "Sqrt": torch.sqrt, "Rsqrt": torch.rsqrt, "Abs": torch.abs,
    "Reciprocal": torch.reciprocal, "Tanh": torch.tanh,
         "Sigmoid": torch.sigmoid, "Silu": F.silu, "Gelu": lambda x: F.gelu(x,
             approximate="tanh"), "Sign": torch.sign, "Sin": torch.sin, "Cos": torch.cos, "Relu": torch.relu}
for op, fn in UNARY.items():
    for d in FLOATS:
        x = pos(3, 5, d=d) if op in ("Log", "Sqrt", "Rsqrt", "Reciprocal") else rnd(3, 5, d=d)
        case(op, T(x), O(fn(D(x)), d))
x = rnd(2000)
case("Relu", T(x), O(torch.relu(x), "f32"))
xi = ints(-5, 5, 7)
case("Relu", T(xi), O(torch.relu(xi)))
case("Neg", T(xi), O(-xi))
x = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0])
case("Relu", T(x), O(torch.relu(x)))
case("IsFinite", T(x), O(torch.isfinite(x)))
for d in FLOATS:
    x, g = rnd(4, 6, d=d), rnd(4, 6, d=d)
    case("IsFinite", T(x), O(torch.isfinite(x)))
    case("InplaceRelu", IO(x, torch.relu(D(x))))
    case("ThresholdBackward", T(g), T(x), S(0), O(torch.where(x > 0, D(g), 0.0), d))
    case("ThresholdBackward", T(g), T(x), S(0.5), O(torch.where(x > 0.5, D(g), 0.0), d))
    z = D(x).requires_grad_()
    F.silu(z).backward(D(g))
    case("SiluBackward", T(g), T(x), O(z.grad, d))
    for mode in ("none", "tanh"):
        z = D(x).requires_grad_()
        F.gelu(z, approximate=mode).backward(D(g))
        case("GeluBackwardV2", T(g), T(x), s(mode), O(z.grad, d))
        case("GeluV2", T(x), i(mode == "tanh"), O(F.gelu(D(x), approximate=mode), d))
    p = pos(5, 2, d=d)
    case("PowTensorScalar", T(p), S(1.5), O(D(p) ** 1.5, d))
    case("Clamp", T(x), S(-0.5), S(0.75), O(D(x).clamp(-0.5, 0.75), d))
    case("ClampMin", T(x), S(0.25), O(D(x).clamp_min(0.25), d))

BIN = {"Add": lambda a, b, k: a + k * b, "Sub": lambda a, b, k: a - k * b}
for d in FLOATS:
    a, b, c = rnd(3, 4, d=d), rnd(4, d=d), rnd(3, 1, d=d)
    for op, fn in BIN.items():
        case(op, T(a), T(b), S(1), O(fn(D(a), D(b), 1), d))
        case(op, T(c), T(b), S(-0.5), O(fn(D(c), D(b), -0.5), d))
        case(op + "s", T(a), S(0.75), S(2), O(fn(D(a), 0.75, 2), d))
        case("Inplace" + op, IO(a, fn(D(a), D(c), 2)), T(c), S(2))
    case("InplaceAdds", IO(a, D(a) + 1.5), S(0.75), S(2))
    case("Mul", T(a), T(b), O(D(a) * D(b), d))
    case("Muls", T(a), S(3), O(D(a) * 3, d))
    case("InplaceMul", IO(a, D(a) * D(c)), T(c))
    case("InplaceMuls", IO(a, D(a) * 0.25), S(0.25))
    p = pos(3, 4, d=d)
    case("Div", T(b), T(p), O(D(b) / D(p), d))
    case("Divs", T(a), S(3), O(D(a) / 3, d))
    case("InplaceDiv", IO(a, D(a) / D(p)), T(p))
    case("InplaceDivs", IO(a, D(a) / 3), S(3))
    case("Maximum", T(a), T(b), O(torch.maximum(a, b)))
    case("Minimum", T(a), T(b), O(torch.minimum(a, b)))
    e = rnd(3, 4, d=d)
    case("Lerps", T(a), T(e), S(0.25), O(torch.lerp(D(a), D(e), 0.25), d))
    case("InplaceLerps", IO(a, torch.lerp(D(a), D(e), 0.9)), T(e), S(0.9))
    one = rnd(1, d="f32" if d == "f32" else d)
    case("Addcmul", T(a), T(e), T(one), S(2), O(D(a) + 2 * D(e) * D(one), d))
    case("InplaceAddcmul", IO(a, D(a) - D(e) * D(b)), T(e), T(b), S(-1))
    case("Addcdiv", T(a), T(e), T(p), S(2), O(D(a) + 2 * D(e) / D(p), d))
    case("InplaceAddcdiv", IO(a, D(a) - D(e) / D(p)), T(e), T(p), S(-1))
# Promotion: bf16 with f32 meets in f32; a result in f32 of two bf16 is rounded to bf16 first.
a, b = rnd(3, 4, d="bf16"), rnd(3, 4) * 1.001
case("Add", T(a), T(b), S(1), O(a + b))
case("Mul", T(a), T(b), O((a * b).to(torch.bfloat16)))
case("Mul", T(a), T(a), O((a * a).float(), "f32", tol=1e-9))
k, m = ints(-9, 9, 3, 4), ints(1, 9, 4, d="i64")
case("Add", T(k), T(m), S(2, "i64"), O(k + 2 * m))
case("Mul", T(k), T(m), O(k * m))
case("Div", T(k), T(m), O(k.double() / m, "f32"))
case("Adds", T(k), S(3, "i64"), S(1, "i64"), O(k + 3))
case("Muls", T(k), S(0.5), O(k * 0.5, "f32"))
case("BitwiseXorTensor", T(k), T(k.flip(0)), O(k ^ k.flip(0)))
case("BitwiseXorTensor", T(k > 0), T(k > 3), O((k > 0) ^ (k > 3)))
big = rnd(3000)
case("Add", T(big), T(big.flip(0)), S(1), O(big + big.flip(0)), views=False)
w = torch.randn(4, dtype=torch.float64)
case("Add", T(w), T(w), S(1), O(w + w))
# A view with stride 0 is read as what it repeats.
r = rnd(4).expand(3, 4)
case("Mul", {"k": "T", "_t": r, "_plain": True}, T(rnd(1).expand(3, 4).clone() * 0 + 2), O(D(r) * 2, "f32"), views=False)

COMPARE = {"Eq": torch.eq, "Ne": torch.ne, "Gt": torch.gt, "Ge": torch.ge, "Lt": torch.lt, "Le": torch.le}
for op, fn in COMPARE.items():
    for d in FLOATS + ["i32", "i64"]:
        a, b = ints(-3, 3, 4, 5, d=d), ints(-3, 3, 5, d=d)
        case(op + "Tensor", T(a), T(b), O(fn(a, b)))
        case(op + "Scalar", T(a), S(1, "i64" if d[0] == "i" else "f32"), O(fn(a, 1)))
a, b = ints(0, 2, 4, 5), ints(0, 2, 5)
case("LogicalAnd", T(a), T(b), O(torch.logical_and(a, b)))
case("LogicalOr", T(a > 0), T(b > 0), O(torch.logical_or(a, b)))
case("LogicalNot", T(a), O(a == 0))
case("LogicalNot", T(a > 0), O(a == 0))
for d in FLOATS + ["i32", "i64"]:
    x, y = ints(-9, 9, 4, 5, d=d), ints(-9, 9, 5, d=d)
    case("SWhere", T(a > 0), T(x), T(y), O(torch.where(a > 0, x, y)))
    case("InplaceMaskedFillScalar", IO(x, x.masked_fill(b > 0, 3)), T(b > 0), S(3))
x = rnd(4, 5)
case("InplaceMaskedFillScalar", IO(x, x.masked_fill(a > 0, -float("inf"))), T(a > 0), S(-float("inf")))
