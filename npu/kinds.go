package npu

// The vocabulary of ops that a device executes. Shapes are logical (NCHW activations, OIHW weights) whatever the
// layout. "act" is the dtype of activations (F32, BF16 or F16); other floats are F32. Accumulation inside a
// kernel is at least float32. "…" marks optional trailing inputs, indicated by the attribute in brackets.
//
// A kernel that is composed of several may round to act between them, where its result is act.
//
// What only the gradient of the same kind reads (maxpool's idx, batchnorm's rstd, attention's lse) may be kept in a device's own form, with a layout of its
// own. Labels, ids and positions out of range are an error, but a device that cannot look (Info.Unchecked) leaves the result undefined; it must
// not touch memory of others.
//
// Aliasing: "inplace a→y" means output y may be bound to the place of input a. Package npu/kind has the same as data, and which outputs may be nil.
const (
	// Conv2D: x act[N C H W], w act[O C/g KH KW], (b f32[O] if bias) → y act[N O OH OW].
	// Attrs: stride []int{h,w}, pad []int{top,left,bottom,right}, dilation []int{h,w}, groups int, bias bool, relu bool (applied last), and
	// algorithm string (AttrAlgorithm).
	Conv2D = "conv2d"
	// Conv2DBwdData: dy act[N O OH OW], w act[O C/g KH KW] → dx act[N C H W]. Attrs of Conv2D, x_shape []int.
	Conv2DBwdData = "conv2d_bwd_data"
	// Conv2DBwdWeights: x act, dy act → dw f32[O C/g KH KW], (db f32[O] if bias). Attrs of Conv2D, w_shape []int.
	Conv2DBwdWeights = "conv2d_bwd_weights"

	// MatMul: a act[… M K] (or [… K M] if ta), b act[… K N] (or [… N K] if tb), (bias f32[N] if bias) → y[… M N], act or f32.
	// Leading dimensions are equal in a and b. Attrs: ta, tb, bias bool; out "f32" where y is f32 on act operands (gradients of weights).
	MatMul = "matmul"

	// BatchNorm (training, Ioffe and Szegedy arXiv 1502.03167): x act[N C H W] or [N C], gamma f32[C], beta f32[C], run_mean f32[C], run_var f32[C],
	// (res act like x if add) → y act like x, mean f32[C], rstd f32[C], run_mean', run_var' (inplace 3→3, 4→4: the plan always binds them in place).
	// y = relu?(gamma*(x-mean)*rstd + beta + res?), rstd = 1/√(variance + eps). Biased variance normalises; the running variance is updated with the unbiased one:
	// run = (1-momentum)*run + momentum*batch. Attrs: eps, momentum float64, relu, add bool.
	BatchNorm = "batchnorm"
	// BatchNormInfer: x, gamma, beta, mean f32[C], var f32[C], (res if add) → y. Attrs: eps, relu, add. inplace x→y.
	BatchNormInfer = "batchnorm_infer"
	// BatchNormBwd: dy act like x, x act, gamma, beta f32[C], mean, rstd f32[C], (y act if relu), (dy2 act if sum) → dx act, dgamma f32[C],
	// dbeta f32[C], (dres act if add). With g = dy + dy2?, masked where y <= 0 if relu: dres = g; dgamma = Σ g·(x-mean)·rstd; dbeta = Σ g; dx
	// as usual. Attrs: relu, add, sum bool, eps. dx and dres may be bound in place of dy or dy2, not both of the same one. Attr own_y
	// bool: the promise that BatchNorm{relu} without add computed y from the same x, gamma, beta, mean and rstd on this device: its sign
	// follows from x, and a device need not read y.
	BatchNormBwd = "batchnorm_bwd"

	// Relu: x → y, act. inplace. ReluBwd: dy, y → dx = dy where y > 0 else 0. inplace dy→dx.
	Relu    = "relu"
	ReluBwd = "relu_bwd"
	// Unary: x → y, act. Attr fn: neg exp log sqrt rsqrt square abs recip tanh sigmoid silu sign, or
	// affine (y = alpha*x + beta, attrs alpha, beta float64). inplace.
	Unary = "unary"
	// Gelu (arXiv 1606.08415): x → y, act: x·Φ(x) with the normal distribution's Φ. Attr approximate as PyTorch's: "none" (and "") is
	// x/2·(1 + erf(x/√2)), "tanh" is x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))). inplace. GeluBwd: dy, x → dx. Attr of Gelu. inplace dy→dx, x→dx.
	Gelu    = "gelu"
	GeluBwd = "gelu_bwd"
	// Binary: a, b → y with NumPy broadcasting. Attr fn: add sub mul div max min gt ge eq (the last three give 1 or 0); relu bool (applied last).
	// inplace a→y where a has y's shape.
	Binary = "binary"
	// BroadcastTo: x → y. Attr shape []int.
	BroadcastTo = "broadcast_to"
	// Reduce: x → y. Attrs: fn sum mean max, axes []int (sorted), keep bool; out "f32" where y is f32 on an act x (gradients of biases).
	Reduce = "reduce"

	// MaxPool: x act[N C H W] → y act, idx (I32 like y: index into H*W of the input plane, or an equivalent in a device's own layout).
	// Attrs: kernel, stride []int{h,w}, pad []int{t,l,b,r}, dilation. Padding never wins. idx may be nil.
	MaxPool = "maxpool"
	// MaxPoolBwd: dy act, idx → dx act. Attrs of MaxPool, x_shape.
	MaxPoolBwd = "maxpool_bwd"
	// AvgPool: x → y. Attrs: kernel, stride, pad, include_pad bool. AvgPoolBwd: dy → dx, attr x_shape too.
	AvgPool    = "avgpool"
	AvgPoolBwd = "avgpool_bwd"
	// GlobalAvgPool: x act[N C H W] → y act[N C]. GlobalAvgPoolBwd: dy act[N C] → dx, attr x_shape.
	GlobalAvgPool    = "gap"
	GlobalAvgPoolBwd = "gap_bwd"

	// Softmax, LogSoftmax over the last axis: x → y. Their Bwd: dy, y → dx.
	Softmax       = "softmax"
	SoftmaxBwd    = "softmax_bwd"
	LogSoftmax    = "log_softmax"
	LogSoftmaxBwd = "log_softmax_bwd"
	// CrossEntropy: logits act[N C], labels i32[N] → loss f32[] (the SUM over valid rows), count f32[] (valid rows), lse f32[N].
	// Attrs: smoothing float64 (as PyTorch's label_smoothing), ignore_index int (default -100). A label outside 0…C-1 that is not ignore_index is an error.
	CrossEntropy = "cross_entropy"
	// CrossEntropyBwd: logits, labels, lse, dloss f32[] → dlogits act (of the sum, times dloss). inplace logits→dlogits.
	CrossEntropyBwd = "cross_entropy_bwd"
	// OneHot: labels i32[N] → y f32[N C], rows f32[N] (may be nil). y is on at a row's label and off elsewhere, times the weight of the class; rows is the
	// weight of the label, 1 without weights. A row whose label is ignore_index is 0 in both. Attrs: classes int, on, off float64 (default 1 and 0),
	// weights []float64 (one for each class), ignore_index. Errors as for CrossEntropy.
	OneHot = "one_hot"
	// SoftCrossEntropy: logits act[N C], target f32[N C] → loss f32[] (Σ target·(lse - logit)), count f32[] (rows whose targets have a sum other than 0), lse
	// f32[N]. Targets need not add to 1: a row may have a weight.
	SoftCrossEntropy = "soft_cross_entropy"
	// SoftCrossEntropyBwd: logits, target, lse, dloss f32[] → dlogits act = (Σ target · softmax - target)·dloss. inplace logits→dlogits.
	SoftCrossEntropyBwd = "soft_cross_entropy_bwd"
	// BCE, binary cross-entropy of every element with its logit: logits act[N …], target f32[N …], (weight f32[N] if weighted) → loss f32[] (the SUM of
	// weight·(pos·target·softplus(-logit) + (1-target)·softplus(logit)), count f32[] (Σ weight; N without). Elements of rows with weight 0 are not read
	// into the result. Attrs: pos_weight []float64 (pos: one number, or one for each place on the last axis; default 1), weighted bool.
	BCE = "bce"
	// BCEBwd: logits, target, (weight), dloss f32[] → dlogits act. Attrs of BCE. inplace logits→dlogits.
	BCEBwd = "bce_bwd"
	// MSE, squared error: x act[N …], target f32[N …], (weight f32[N] if weighted) → loss f32[] (the SUM of weight·(x-target)²), count f32[] (Σ weight; N
	// without). Rows as for BCE. Attrs: weighted bool.
	MSE = "mse"
	// MSEBwd: x, target, (weight), dloss f32[] → dx act = 2·weight·(x-target)·dloss. inplace x→dx.
	MSEBwd = "mse_bwd"
	// TopK: logits[N C], labels i32[N] → correct f32[]: rows whose label is among the k largest (ties: lower index first). Attrs: k, ignore_index.
	TopK = "topk"

	// Dropout: x act, seed i64[] → y = x*m/(1-p), 0 where m is 0. Also its own gradient. Attrs: p float64, id int (distinguishes layers); rows bool: all elements
	// of the same index along the first axis have one m, that of i = this index (stochastic depth, arXiv 1603.09382). inplace.
	// m[i] of devices that run on the host: z = seed ^ (id+1)*0xD1342543DE82EF95; z += (i+1)*0x9E3779B97F4A7C15; splitmix64 finaliser; keep iff (z>>40)*2^-24
	// >= p; i in plain order. An accelerator may have bits of its own, if they are a function of seed, id, number of elements and i.
	Dropout = "dropout"

	// Transpose: x → y. Attr perm []int. Concat: x0, x1, … → y. Attr axis. Slice: x → y. Attrs begin, end []int.
	// Pad: x → y, zeros all around (the gradient of Slice). Attrs before, after []int.
	Transpose = "transpose"
	Concat    = "concat"
	Slice     = "slice"
	Pad       = "pad"
	// Reshape: x → y, plain to plain. The plan makes it an alias if possible. Attrs: shape []int; stop bool: no gradient passes (graphs only).
	Reshape = "reshape"
	// Convert: x → y, same shape, other dtype or layout or both. Rounds to nearest even. (Graphs carry y's dtype string; devices read Out.)
	Convert = "convert"
	// Fill: → y. Attr value float64. (Graphs carry y's shape []int and dtype string too; devices read Out.)
	Fill = "fill"

	// Language models.

	// Embedding: ids i32[…], w f32 or act[V D] → y[… D] of w's type: rows of the table. An id outside 0…V-1 is an error that names its position.
	Embedding = "embedding"
	// EmbeddingBwd: dy act[… D], ids i32[…], (acc f32[V D] if add) → dw f32[V D]: dw = acc? + Σ of the rows of dy with the same id, in
	// row order (deterministic). Attrs: rows int (V), add bool. inplace acc→dw; without add the kernel fills the rest with zeros.
	EmbeddingBwd = "embedding_bwd"
	// RMSNorm (arXiv 1910.07467): x act[… D], w f32[D], (res act like x if add) → y act like x, rstd f32[…], (sum act like x if add). With s =
	// x + res? (rounded to act, returned as sum): rstd = 1/√(mean(s²) + eps), y = s·rstd·w. Attrs: eps float64, add bool. inplace x→y, x→sum,
	// res→sum, res→y; not two to the same.
	RMSNorm = "rmsnorm"
	// RMSNormBwd: dy act, x act (the normalised tensor: x or sum), w f32[D], rstd f32[…], (dres act if add) → dx act, dw f32[D].
	// dx = rstd·(dy·w - x·rstd²·mean(dy·w·x)) + dres?; dw = Σ dy·x·rstd. Attrs: eps float64, add bool. inplace dy→dx, dres→dx.
	RMSNormBwd = "rmsnorm_bwd"
	// LayerNorm (arXiv 1607.06450): x act[… D], w, b f32[D], (res act like x if add) → y act like x, mean f32[…], rstd f32[…], (sum act like x if
	// add). With s = x + res? (rounded to act, returned as sum): mean and the biased variance of a row of s, rstd = 1/√(variance + eps), y =
	// (s-mean)·rstd·w + b. Attrs: eps float64 (default 1e-5), add bool. inplace x→y, x→sum, res→sum, res→y; not two to the same.
	LayerNorm = "layernorm"
	// LayerNormBwd: dy act, x act (the normalised tensor: x or sum), w f32[D], mean, rstd f32[…], (dres act if add) → dx act, dw f32[D], db f32[D].
	// With n = (x-mean)·rstd and g = dy·w: dx = rstd·(g - mean(g) - n·mean(g·n)) + dres?; dw = Σ dy·n; db = Σ dy. Attrs: eps float64, add
	// bool. inplace dy→dx, dres→dx.
	LayerNormBwd = "layernorm_bwd"
	// Rope, rotary positions (arXiv 2104.09864): x act[B S H D], (pos i32[B S] if pos) → y. D is even. Pair i of a head is rotated by the angle
	// p·f(i), f(i) = theta^(-2i/D); p is pos, or the index along S. Attrs: theta float64; pairs string: "half" (i with i+D/2) or "adjacent"
	// (2i with 2i+1); inverse bool rotates back (the gradient); pos bool. Scaling of Llama 3.1 where factor > 1 (attrs factor, low, high
	// float64, original int): with the wavelength L = 2π/f: f stays where L < original/high, becomes f/factor where L > original/low, between
	// them (1-t)·f/factor + t·f with t = (original/L - low)/(high - low). Angles are computed in float64, their sine and cosine rounded to
	// float32. inplace.
	Rope = "rope"
	// Attention (arXiv 1706.03762; grouped queries arXiv 2305.13245): q act[B S H D], k, v act[B T G D], (seg i32[B S] if seg), (keys i32[B T] if
	// keys), (mask i32[B|1 H|1 S T] if mask) → o act[B S H D], lse f32[B H S]. G divides H; query head h reads key head h/(H/G). score = scale·q·k;
	// causal: query s sees keys t ≤ s + (T-S); seg (S = T): only keys of the same segment; keys and mask: only where they are not 0. o = Σ
	// softmax(score)·v, lse = log Σ e^score. For a query that sees nothing, o is 0 and lse -inf. Kernels do not store all S×T scores (arXiv
	// 2205.14135). Attrs: scale float64, causal, seg, keys, mask bool.
	Attention = "attention"
	// AttentionBwd: do act like q, q, k, v, o, lse, (seg), (keys), (mask) → dq act like q, dk act like k, dv act like v. Attrs of Attention.
	AttentionBwd = "attention_bwd"
	// AttentionCached, for generation: q act[B S H D], k, v f32 or act [B T G D], pos i32[B S] → o act[B S H D]: query (b, s) sees keys t ≤
	// pos[b,s] (none where that is negative: o is 0). Attrs: scale float64.
	AttentionCached = "attention_cached"
	// CacheWrite: cache f32[B T G D], x act[B S G D], pos i32[B S] → cache' (inplace, always bound so by the plan): row pos[b,s] of cache b
	// becomes x[b,s]; a negative position writes nothing, a position beyond T-1 is an error.
	CacheWrite = "cache_write"
	// SwiGLU (arXiv 2002.05202): gate act[…], up act like gate → y = silu(gate)·up. inplace gate→y, up→y.
	SwiGLU = "swiglu"
	// SwiGLUBwd: dy, gate, up act → dgate, dup act. inplace gate→dgate, up→dup, dy→dgate or dup; not two to the same.
	SwiGLUBwd = "swiglu_bwd"
	// LinearCrossEntropy: x act[N D], w act[V D], labels i32[N] → loss f32[] (the SUM over valid rows), count f32[], lse f32[N]: cross-entropy
	// of the logits x·wᵀ, which are computed a few rows at a time and not kept. Attrs: ignore_index int (default -100). Errors as for CrossEntropy.
	LinearCrossEntropy = "linear_cross_entropy"
	// LinearCrossEntropyBwd: x, w, labels, lse f32[N], dloss f32[] → dx act[N D], dw f32[V D].
	LinearCrossEntropyBwd = "linear_cross_entropy_bwd"
	// LinearCrossEntropyGrad combines both and computes the logits once: x, w, labels, dloss f32[] → loss, count, lse, dx act[N D], dw f32[V
	// D]. The plan fuses the two into it.
	LinearCrossEntropyGrad = "linear_cross_entropy_grad"

	// Flat memory: all are F32[n] vectors; outputs named like inputs are in place. hyper is a small f32 vector in device memory, so that a
	// step's hyperparameters are data rather than code. Only copies write it (Stream.CopyIn, Stream.Copy), no kernel and no collective: a device may
	// have to know on the host what it holds.

	// SGD: hyper f32[8] = {lr, grad_scale, momentum, weight_decay, dampening, first(1|0), 0, 0}, w, g, m → w, m. g is multiplied by grad_scale first.
	// Attrs: nesterov, decoupled bool, has_momentum bool (else no m). PyTorch's rule: g += wd*w (coupled) | w -= lr*wd*w (decoupled);
	// m = first ? g : momentum*m + (1-dampening)*g; d = nesterov ? g + momentum*m : m; w -= lr*d.
	SGD = "sgd"
	// AdamW (arXiv 1711.05101): hyper f32[9] = {lr, grad_scale, beta1, beta2, eps, weight_decay, bc1 = 1-beta1^t, bc2 = 1-beta2^t, t}, w, g, m, v
	// → w, m, v. t counts steps from 1; a device uses bc1 and bc2, or computes them of t. Attr coupled bool (Adam with L2). w -= lr*wd*w; m, v
	// updated; w -= lr/bc1 * m/(sqrt(v/bc2) + eps).
	AdamW = "adamw"
	// SumSq: g f32[n] → s f64[2] += {Σ g², number of non-finite elements}: added to the present value in float64, in a fixed order; a square may
	// be rounded to float32. inplace only.
	SumSq = "sumsq"
	// LARS (arXiv 1708.03888) on one tensor: hyper f32[8] = {lr, grad_scale, momentum, weight_decay, trust, eps, first, nesterov}, w, g, m, sw
	// f64[2], sg f64[2] (SumSq of w and of g) → w, m. Attr skip bool (norms and biases: no adaptation, no decay). local = trust*|w|/(|g| +
	// wd*|w| + eps) if both norms > 0 else 1. d = local*lr*(g + wd*w); m = first ? d : momentum*m + d; w -= m (nesterov: w -= d + momentum*m).
	LARS = "lars"
	// LAMBMoments and LAMB (arXiv 1904.00962, as timm and NVIDIA have it) step one tensor together. LAMBMoments: hyper as AdamW's, w, g, m, v → s f64[2] = {Σ w²,
	// Σ u²} in a fixed order, m, v updated; u = m/bc1/(sqrt(v/bc2) + eps) + weight_decay*w, with the new m and v. LAMB: hyper, w, m, v, s → w -= lr*trust*u,
	// trust = √s[0]/√s[1] if both > 0 else 1. Attr clip bool: trust is 1 at most.
	LAMBMoments = "lamb_moments"
	LAMB        = "lamb"
	// Scale: hyper f32[1], x → x *= hyper[0].
	Scale = "scale"
	// EMA: hyper f32[2] = {decay, 1-decay}, average, x → average = decay*average + (1-decay)*x, an exponential moving average of x.
	EMA = "ema"
)
