from cases import *

for d in FLOATS:
    for wd in sorted({d, "f32"}):
        for shape, last in (((3, 4, 6), 1), ((2, 3, 4), 2)):
            dims = shape[-last:]
            x, w, b, dy = rnd(*shape, d=d), rnd(*dims, d=wd), rnd(*dims, d=wd), rnd(*shape, d=d)
            z, w_, b_ = D(x).requires_grad_(), D(w).requires_grad_(), D(b).requires_grad_()
            y, mean, rstd = torch.native_layer_norm(z, dims, w_, b_, 1e-5)
            case("LayerNorm", T(x), I(*dims), T(w), T(b), f(1e-5), O(y, d), O(mean, "f32"), O(rstd, "f32"))
            y.backward(D(dy))
            m, r = mean.detach().float(), rstd.detach().float()
            case("LayerNormBackward", T(dy), T(x), I(*dims), T(m), T(r), T(w), T(b), B(1, 1, 1), O(z.grad, d), O(w_.grad, wd), O(b_.grad, wd))
            case("LayerNormBackward", T(dy), T(x), I(*dims), T(m), T(r), T(w), N, B(0, 1, 0), N, O(w_.grad, wd), N)
    x, dy = rnd(5, 6, d=d), rnd(5, 6, d=d)
    z = D(x).requires_grad_()
    y, mean, rstd = torch.native_layer_norm(z, (6,), None, None, 1e-3)
    case("LayerNorm", T(x), I(6), N, N, f(1e-3), O(y, d), N, N)
    y.backward(D(dy))
    case("LayerNormBackward", T(dy), T(x), I(6), T(mean.detach().float()), T(rstd.detach().float()), N, N, B(1, 0, 0), O(z.grad, d), N, N)
