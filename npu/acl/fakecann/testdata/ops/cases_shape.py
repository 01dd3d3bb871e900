from cases import *

for d in FLOATS + ["i32", "i64", "bool", "u8", "f64"]:
    x = ints(0, 2, 3, 4, 2, d=d) if d in ("bool", "u8") else ints(-9, 9, 3, 4, 2, d=d)
    for e in ["f32", "i32", "bool"] if d == "bf16" else ["bf16"]:
        case("Cast", T(x), dt(e), O(x.to(TYPES[e])))
    case("InplaceCopy", IO(torch.zeros_like(x), x), T(x))
    case("Permute", T(x), I(2, 0, 1), O(x.permute(2, 0, 1)))
    case("Cat", L(T(x), T(x[:, :1]), T(x[:, 2:])), i(1), O(torch.cat([x, x[:, :1], x[:, 2:]], 1)))
    case("Stack", L(T(x), T(x)), i(1), O(torch.stack([x, x], 1)))
    case("Expand", T(x[:, :1]), I(2, 3, 4, 2), O(x[:, :1].expand(2, 3, 4, 2)))
    case("InplaceZero", IO(x, torch.zeros_like(x)))
    case("InplaceOne", IO(x, torch.ones_like(x)))
    case("InplaceFillScalar", IO(x, torch.ones_like(x)), S(1))
    case("ConstantPadNd", T(x), I(1, 2, 0, 1), S(1), O(F.pad(D(x), [1, 2, 0, 1], value=1), d))
    case("Triu", T(x), i(1), O(torch.triu(D(x), 1), d))
    case("Tril", T(x), i(-1), O(torch.tril(D(x), -1), d))
    if d != "f64":
        case("InplaceFillTensor", IO(x, torch.ones_like(x)), T(torch.ones(1, dtype=x.dtype)))
        case("Slice", T(x), i(1), i(1), i(4), i(2), O(x[:, 1:4:2]))
        case("SliceV2", T(x), I(1, 0), I(3, 4), I(0, -2), I(1, 2), O(x[1:3, 0:4:2]))
x = torch.tensor([1.00390625, 1.01171875, -1.00390625, 65504.0, 65519.0, 65520.0, 3e38, 3.4e38, 1e-8, 6e-8, float("nan"), float("inf")])
for d in ("bf16", "f16"):
    case("Cast", T(x), dt(d), O(x.to(TYPES[d]), tol=1e-7))
case("Cast", T(torch.tensor([1.9, -1.9, float("nan"), 5e9])), dt("i32"), O(torch.tensor([1, -1, 0, 2147483647], dtype=torch.int32)))
x = rnd(2, 3, d="bf16")
case("InplaceCopy", IO(torch.zeros(4, 2, 3), x.float().expand(4, 2, 3)), T(x))
case("InplaceCopy", IO(torch.zeros(4, 2, 3), x[:, :1].float().expand(4, 2, 3)), T(x[:, :1]))
case("Arange", S(1), S(4), S(0.5), O(torch.arange(1, 4, 0.5)))
case("Arange", S(0, "i64"), S(7, "i64"), S(2, "i64"), O(torch.arange(0, 7, 2)))

# Empty tensors are no work.
e = torch.zeros(0, 3)
case("InplaceCopy", IO(e, e), T(e), views=False)
case("Cat", L(T(e), T(rnd(2, 3) * 0 + 1)), i(0), O(torch.ones(2, 3)), views=False)
case("Stack", L(T(e), T(e)), i(0), O(torch.zeros(2, 0, 3)), views=False)
