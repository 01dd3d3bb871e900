from cases import *

for d in FLOATS + ["i32", "i64"]:
    x = ints(-9, 9, 4, 5, 3, d=d)
    for it in ("i32", "i64"):
        k1 = torch.tensor([4, 0, 4, 2]).to(TYPES[it])
        case("IndexSelect", T(x), i(1), T(k1), O(x.index_select(1, k1.long())))
        k2 = torch.tensor([[3, 0], [1, 1], [2, 3]]).to(TYPES[it])
        case("GatherV2", T(x), i(0), T(k2), O(x[k2.long()]))
        e = ints(0, 5, 4, 2, 3, d=it)
        case("Gather", T(x), i(1), T(e), O(x.gather(1, e.long())))
        case("Gather", T(x), i(-2), T(e[:2]), O(x.gather(1, e[:2].long())))
        w = ints(-9, 9, 6, 4, d=d)
        ids = ints(0, 6, 2, 3, d=it)
        case("Embedding", T(w), T(ids), O(w[ids.long()]))
        a, b = torch.tensor([[0], [3]]).to(TYPES[it]), torch.tensor([4, 1, 0]).to(TYPES[it])
        case("Index", T(x), L(T(a), T(b)), O(x[a.long(), b.long()]))
        u = ints(-9, 9, 2, 3, 3, d=d)
        want = x.clone()
        want[a.long(), b.long()] = u
        case("IndexPutImpl", IO(x, want), L(T(a), T(b)), T(u), i(0), i(0))
        same = torch.tensor([1, 1, 2]).to(TYPES[it])
        v = ints(-9, 9, 5, 3, d=d)
        case("IndexPutImpl", IO(x, x.index_put((same.long(),), v.expand(3, 5, 3), accumulate=True)), L(T(same)), T(v), i(1), i(0))
        src = ints(-9, 9, 4, 2, 3, d=d)
        case("ScatterAdd", T(x), i(1), T(e), T(src), O(x.scatter_add(1, e.long(), src)))
        once = torch.stack([torch.randperm(5)[:2] for _ in range(12)]).reshape(4, 3, 2).permute(0, 2, 1).to(TYPES[it])
        case("InplaceScatter", IO(x, x.scatter(1, once.long(), src)), i(1), T(once), T(src), i(0))
        case("InplaceScatter", IO(x, x.scatter(1, once.long(), src, reduce="add")), i(1), T(once), T(src), i(1))
        case("InplaceScatter", IO(x, x.scatter(1, once.long(), src, reduce="multiply")), i(1), T(once), T(src), i(2))
        dup = torch.tensor([2, 0, 2]).to(TYPES[it])
        case("IndexAdd", T(x), i(1), T(dup), T(x[:, :3] + 1), S(2, "i64" if d[0] == "i" else "f32"), O(x.index_add(1, dup.long(), x[:, :3] + 1, alpha=2)))
        nd = torch.tensor([[0, 4], [3, 1]]).to(TYPES[it])
        u = ints(-9, 9, 2, 3, d=d)
        want = x.clone()
        want[nd[:, 0].long(), nd[:, 1].long()] = u
        case("ScatterNdUpdate", IO(x, want), T(nd), T(u))
        u = ints(-9, 9, 2, 5, 1, d=d)
        want = x.clone()
        want[0, :, 2], want[1, :, 0] = u[0, :, 0], u[1, :, 0]
        case("InplaceScatterUpdate", IO(x, want), T(torch.tensor([2, 0]).to(TYPES[it])), T(u), i(-1))
    on, off = torch.ones(1).to(TYPES[d]), (torch.ones(1) * 3).to(TYPES[d])
    ids = ints(0, 4, 2, 3)
    hot = torch.where(F.one_hot(ids.long(), 4) == 1, on, off)
    case("OneHot", T(ids), i(4), T(on), T(off), i(-1), O(hot))
    case("OneHot", T(ids), i(4), T(on), T(off), i(0), O(hot.permute(2, 0, 1)))

for d in FLOATS:
    g, ids = rnd(3, 4, 6, d=d), ints(0, 5, 3, 4)
    for pad, scale in ((-1, 0), (2, 0), (-1, 1)):
        w = torch.zeros(5, 6, dtype=torch.float64, requires_grad=True)
        F.embedding(ids.long(), w, padding_idx=None if pad < 0 else pad, scale_grad_by_freq=bool(scale)).backward(D(g))
        case("EmbeddingDenseBackward", T(g), T(ids), i(5), i(pad), i(scale), O(w.grad, d))
