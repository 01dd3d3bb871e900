package recipes

// Recipe is a whole training run as data. Make one with Load, Decode or Default; the zero value is not a valid recipe.
//
// The tags of a field are its contract: toml is its key, doc what it means, default its value when the file says nothing ("auto": derived
// from other keys, see the tag auto), unit, oneof the allowed words or numbers, min and max the allowed range, over the number that it must exceed.
type Recipe struct {
	Run        Run         `toml:"run" doc:"The run as a whole. Give exactly one of steps and epochs."`
	Model      Model       `toml:"model" doc:"The network."`
	Llama      Llama       `toml:"llama" doc:"The network where model.name = \"llama\": a size by name, or dimensions. A dimension beside a size changes that one; what is 0 is that of the size."`
	Data       Data        `toml:"data" doc:"The samples, for training and for evaluation."`
	Text       TextSection `toml:"text" doc:"How text becomes samples, where data.kind is text or tokens. A sample is a sequence of tokens; the target of each token is the next one."`
	Train      Train       `toml:"train" doc:"How a step is computed, and on what."`
	Optim      Optim       `toml:"optim" doc:"The optimizer."`
	Schedule   Schedule    `toml:"schedule" doc:"The learning rate over time: a linear warm-up, then the shape of kind. It counts optimizer steps, whatever the number of ranks."`
	Eval       Eval        `toml:"eval" doc:"Evaluation on held-out samples. It is exact: every sample counts once, whatever the number of ranks. Without every_epochs and every_steps it happens once, at the end."`
	Checkpoint Checkpoint  `toml:"checkpoint" doc:"Checkpoints. One is always written at the end and when the run is stopped; they are complete, so that a run that goes on is bit-equal to one that was never stopped."`
	Log        Log         `toml:"log" doc:"What is written about the run, and where."`

	origin   origin
	warnings []string
}

// Run is the section [run].
type Run struct {
	Name      string  `toml:"name" default:"auto" auto:"name of the recipe file" doc:"Name of the run, for logs and the output folder."`
	Seed      uint64  `toml:"seed" default:"1" max:"9223372036854775807" doc:"Seed of initial weights, sample order, augmentation and dropout. Same seed, recipe and number of ranks: same numbers, bit by bit."`
	OutputDir string  `toml:"output_dir" default:"auto" auto:"runs/NAME" doc:"Folder for logs, checkpoints and the resolved recipe; counts from the working directory. One run at a time writes there: a second one ends with exit code 73."`
	Steps     int     `toml:"steps" default:"0" unit:"optimizer steps" min:"0" doc:"Length of the run; 0: epochs says it. It counts updates, whatever their batch: a run that is resumed with other ranks makes as many in all."`
	Epochs    float64 `toml:"epochs" default:"0" min:"0" doc:"Length of the run in passes over the training samples; 0: steps says it. A run that is resumed with other ranks, batch or data makes the rest of its epochs (docs/resume.md)."`
}

// Model is the section [model].
type Model struct {
	Name             string  `toml:"name" default:"resnet" oneof:"resnet|llama" doc:"Family of the network. resnet: the other keys of this section. llama: the section [llama]."`
	Depth            int     `toml:"depth" default:"50" oneof:"18|34|50|101|152" doc:"Depth of the ResNet: basic blocks up to 34, bottlenecks from 50 (arXiv 1512.03385)."`
	Width            int     `toml:"width" default:"64" unit:"channels" min:"1" max:"4096" doc:"Channels of the first stage."`
	Classes          int     `toml:"classes" default:"0" min:"0" doc:"Number of classes; 0: as many as the training data has."`
	SmallStem        bool    `toml:"small_stem" default:"false" doc:"Stem for images of about 32 pixels: a 3x3 convolution without stride and pooling."`
	Version          string  `toml:"version" default:"v1.5" oneof:"v1|v1.5" doc:"Where a bottleneck has its stride: v1.5 in the 3x3 convolution (torchvision), v1 in the first 1x1 (the paper, Keras)."`
	ZeroInitResidual bool    `toml:"zero_init_residual" default:"true" doc:"Start the last norm of each block with weight 0, so that blocks begin as the identity (arXiv 1706.02677)."`
	NormEps          float64 `toml:"norm_eps" default:"1e-5" over:"0" max:"1" doc:"Added to the variance in batch norms."`
	NormMomentum     float64 `toml:"norm_momentum" default:"0.1" over:"0" max:"1" doc:"Share of the newest batch in the running statistics."`
	LabelSmoothing   float64 `toml:"label_smoothing" default:"0" min:"0" max:"0.99" doc:"Part of the target that is spread evenly over all classes."`
	InitFrom         string  `toml:"init_from" default:"" doc:"Weights to start from: a safetensors file, a checkpoint folder, and for a llama a Hugging Face folder, one with Meta's names, or a .bin of llama2.c. Looked for beside the recipe, then in the working directory, then among bundled data (stories260k). Empty: random weights."`
	InitHelp         string  `toml:"init_help" default:"" doc:"What to do when init_from is not there, as the commands that get it; the error message ends with it."`
	InitPartial      bool    `toml:"init_partial" default:"false" doc:"Parameters that init_from lacks, or has in another shape, keep their random start (a new classifier). Otherwise they are an error."`
	InitIgnore       string  `toml:"init_ignore" default:"" doc:"Tensors that the weights may hold without the model having them, as names or patterns with *, separated by spaces (fc.* or just *). They are left out and named in the log. Any other tensor that the model lacks is an error, in init_from, on resume and in eval: it tells that the weights are another model's."`
}

// Llama is the section [llama].
type Llama struct {
	Size         string  `toml:"size" default:"" oneof:"|llama2-7b|llama2-13b|llama2-70b|llama3-8b|llama3-70b|llama3.1-8b|llama3.1-70b|llama3.1-405b|llama3.2-1b|llama3.2-3b|stories260k|stories15m|stories42m|stories110m|tiny" doc:"A published model (arXiv 2307.09288, 2407.21783), a story teller (karpathy/tinyllamas), or tiny. Empty: the dimensions say it."`
	Dim          int     `toml:"dim" default:"0" min:"0" max:"65536" doc:"Width of the residual stream."`
	Hidden       int     `toml:"hidden" default:"0" min:"0" max:"262144" doc:"Width of the feed-forward layer; 0 without a size: 8/3 of dim, rounded up to a multiple of 32."`
	Layers       int     `toml:"layers" default:"0" min:"0" max:"1024" doc:"Number of layers."`
	Heads        int     `toml:"heads" default:"0" min:"0" max:"1024" doc:"Query heads."`
	KVHeads      int     `toml:"kv_heads" default:"0" min:"0" max:"1024" doc:"Key and value heads, which divide heads (arXiv 2305.13245); 0 without a size: as many as heads."`
	HeadDim      int     `toml:"head_dim" default:"0" min:"0" max:"1024" doc:"Width of a head; 0: dim / heads."`
	Vocab        int     `toml:"vocab" default:"0" unit:"tokens" min:"0" max:"2097152" doc:"Size of the vocabulary; 0 without a size: that of the tokenizer."`
	Context      int     `toml:"context" default:"0" unit:"tokens" min:"0" max:"16777216" doc:"Longest sequence that the model is for; 0 without a size: text.sequence."`
	RopeTheta    float64 `toml:"rope_theta" default:"0" min:"0" doc:"Base of the rotary frequencies (arXiv 2104.09864); 0 without a size: 10000."`
	RopeFactor   float64 `toml:"rope_factor" default:"0" min:"0" max:"1024" doc:"Scaling of Llama 3.1: low frequencies are divided by it; 0: that of the size, 1: none."`
	RopeLow      float64 `toml:"rope_low_freq_factor" default:"1" over:"0" doc:"With rope_factor: wavelengths above rope_original_context / this are divided."`
	RopeHigh     float64 `toml:"rope_high_freq_factor" default:"4" over:"0" doc:"With rope_factor: wavelengths below rope_original_context / this stay."`
	RopeOriginal int     `toml:"rope_original_context" default:"8192" unit:"tokens" min:"1" doc:"With rope_factor: the context before the scaling."`
	NormEps      float64 `toml:"norm_eps" default:"0" min:"0" max:"1" doc:"Added to the mean square in norms; 0: that of the size, or 1e-5."`
	Tied         string  `toml:"tied_embeddings" default:"auto" oneof:"auto|true|false" doc:"The last linear layer is the embedding. auto: as the size has it, true without one."`
	InitStd      float64 `toml:"init_std" default:"0.02" over:"0" max:"1" doc:"Deviation of the normal distribution that weights start with."`
	InitDepth    bool    `toml:"init_depth_scaled" default:"true" doc:"Projections back into the residual stream start with a deviation that is smaller by 1/sqrt(2 * layers)."`
}

// Data is the section [data].
type Data struct {
	Kind            string    `toml:"kind" default:"imagefolder" oneof:"imagefolder|idx|packed|text|tokens|synthetic" doc:"imagefolder: ROOT/SPLIT/CLASS/picture.jpg. idx: files of the MNIST family. packed: records of a label (int32) and raw pixels (see gotrain's data/images). text: files of text, cut into tokens when the run starts. tokens: shards that gotrain tokenize made. synthetic: noise, for benchmarks."`
	Root            string    `toml:"root" default:"" doc:"Folder of the data set, or the name of a bundled one (flowers, fashion-mini, shakespeare). Not for synthetic."`
	TrainSplit      string    `toml:"train_split" default:"auto" auto:"train; packed: train*.bin; text: train*.txt" doc:"Training part: a folder below root (imagefolder), train or test (idx), a file or glob pattern below root (packed, text), the name of a part (tokens)."`
	EvalSplit       string    `toml:"eval_split" default:"auto" auto:"val; idx: test; packed: val*.bin; text: val*.txt" doc:"Held-out part, named like train_split."`
	ImageSize       int       `toml:"image_size" default:"auto" auto:"224 for imagefolder and synthetic, 0 for idx and packed" unit:"pixels" min:"0" max:"8192" doc:"Width and height of a sample. 0: as the pictures are stored (idx and packed only)."`
	Channels        int       `toml:"channels" default:"auto" auto:"3; idx: 1" oneof:"1|3" doc:"3: colour. 1: grey (idx, packed, synthetic)."`
	Augment         string    `toml:"augment" default:"auto" auto:"random_resized_crop for imagefolder, otherwise none" oneof:"none|random_resized_crop|pad_crop" doc:"none: as in evaluation. random_resized_crop: a region of random size, shape and place (torchvision's). pad_crop: shifted by up to pad pixels, for small pictures. The last two also mirror at random."`
	FlipProbability float64   `toml:"flip_probability" default:"0.5" min:"0" max:"1" doc:"Probability of mirroring left and right, where augment is not none."`
	CropArea        []float64 `toml:"crop_area" default:"[0.08, 1.0]" doc:"Smallest and largest part of the picture that random_resized_crop takes."`
	CropRatio       []float64 `toml:"crop_ratio" default:"[0.75, 1.3333333333333333]" doc:"Smallest and largest width/height of that region."`
	PadPixels       int       `toml:"pad_pixels" default:"4" unit:"pixels" min:"0" max:"1024" doc:"Border of pad_crop."`
	EvalResize      int       `toml:"eval_resize_pixels" default:"auto" auto:"image_size * 256 / 224 for imagefolder, otherwise 0" unit:"pixels" min:"0" max:"16384" doc:"In evaluation the short side becomes this long before the middle is cut out. 0: not resized."`
	PackedSize      int       `toml:"packed_size" default:"0" unit:"pixels" min:"0" max:"8192" doc:"Width and height of the pictures in packed records; 0: their header says it."`
	Mean            []float64 `toml:"mean" default:"auto" auto:"ImageNet's for 3 channels of pictures, otherwise 0" doc:"Mean per channel that is subtracted from pixel values (0 to 1)."`
	Std             []float64 `toml:"std" default:"auto" auto:"ImageNet's for 3 channels of pictures, otherwise 1" doc:"Deviation per channel that they are then divided by."`
	Decoder         string    `toml:"decoder" default:"auto" oneof:"auto|turbo|go" doc:"JPEG decoder. auto: libjpeg-turbo where it can be loaded, else Go's, which is several times slower."`
	Workers         int       `toml:"workers_per_rank" default:"0" min:"0" max:"256" doc:"Goroutines that load samples; 0: chosen by the number of cores."`
	MaxMegapixels   float64   `toml:"max_megapixels" default:"89" over:"0" max:"4096" doc:"Larger pictures are refused by their header, before memory is taken."`
	EXIFOrientation bool      `toml:"exif_orientation" default:"false" doc:"imagefolder: turn pictures as their EXIF orientation says. false: as they are stored, which is what torchvision's ImageFolder does; the run warns where that makes a difference."`
	Shuffle         bool      `toml:"shuffle" default:"true" doc:"Take training samples in a new random order each epoch."`
	Tail            string    `toml:"tail" default:"drop" oneof:"drop|pad" doc:"Last samples of an epoch that do not fill a batch on every rank. drop: left out, other ones each epoch. pad: the batch is filled up with rows that do not count."`
	BadFiles        string    `toml:"bad_files" default:"error" oneof:"error|skip" doc:"A sample that cannot be read. error: the run ends and names it. skip: it is named and left out."`
	BadFileLimit    int       `toml:"bad_file_limit" default:"100" min:"1" doc:"With skip: more distinct bad samples than this end the run."`
	Published       int       `toml:"published_samples" default:"0" unit:"samples" min:"0" doc:"Number of training samples, for gotrain plan where the data are not here; 0: not known. A run counts what it finds."`
	Samples         int       `toml:"synthetic_samples" default:"1024" min:"1" doc:"Samples of an epoch of synthetic data."`
	SyntheticEval   int       `toml:"synthetic_eval_samples" default:"64" min:"1" doc:"Held-out samples of synthetic data."`
}

// TextSection is the section [text].
type TextSection struct {
	Tokenizer string `toml:"tokenizer" default:"" doc:"Tokenizer of data.kind = text: a SentencePiece .model, a Hugging Face tokenizer.json or its folder, ranks of tiktoken, a .bin of llama2.c, or the name of a bundled data set that has one (stories260k). For tokens: not needed; where given it must be the one that the shards were made with, and it goes along into checkpoints."`
	Sequence  int    `toml:"sequence" default:"0" unit:"tokens" min:"0" max:"16777216" doc:"Tokens of a sample; 0: llama.context, or that of llama.size."`
	Separator string `toml:"separator" default:"" doc:"text: where a new document begins. Empty: each file is one. line: each line. blank: at empty lines. Anything else: at lines that are this text."`
	BOS       bool   `toml:"bos" default:"true" doc:"text: the tokenizer's begin-of-text token stands before each document, where it has one."`
	EOS       bool   `toml:"eos" default:"true" doc:"text: the tokenizer's end-of-text token stands behind each document, where it has one and documents are separated."`
	Apart     bool   `toml:"documents_apart" default:"true" doc:"A token sees its own document only, where several share a sequence, and none is asked to predict the first token of the next."`
}

// Train is the section [train].
type Train struct {
	Ranks           int     `toml:"ranks" default:"1" min:"1" max:"4096" doc:"Processes to start on this machine. A launcher (mpirun, torchrun, srun, hcclrun) decides instead of this key where there is one."`
	Batch           int     `toml:"batch_per_rank" default:"16" unit:"samples" min:"1" max:"1048576" doc:"Micro-batch of one rank. The global batch is batch_per_rank * accumulate_steps * ranks."`
	Accumulate      int     `toml:"accumulate_steps" default:"1" min:"1" max:"1048576" doc:"Micro-batches of one optimizer step."`
	DType           string  `toml:"dtype" default:"f32" oneof:"f32|bf16" doc:"Type of activations and of the weights' working copies. Master weights, statistics, losses and reductions are f32 always. bf16 halves the memory of activations everywhere; it is faster only on processors with bf16 instructions (AVX-512 BF16, AMX). Others compute in f32 and say so at the start."`
	Device          string  `toml:"device" default:"auto" oneof:"auto|cpu|ref" doc:"auto: cpu where its library can be loaded, otherwise ref with a warning. ref is plain Go: right, and slow."`
	Threads         int     `toml:"threads_per_rank" default:"0" min:"0" max:"1024" doc:"Compute threads; 0: the cores of this machine divided by its ranks, and no more than a CPU quota (cgroup) has room for."`
	PinCPUs         bool    `toml:"pin_cpus" default:"true" doc:"Bind each rank to cores of its own. Only where gotrain starts the ranks itself and there are enough cores."`
	Recompute       string  `toml:"recompute" default:"none" oneof:"none|layer" doc:"layer: keep only what leaves each layer of the model and compute the rest again in the backward pass (arXiv 1604.06174): much less memory, about a third more arithmetic, the same numbers. For models of layers, such as llama."`
	ClipNorm        float64 `toml:"clip_norm" default:"0" min:"0" doc:"Limit of the global L2 norm of the gradients; 0: none. With a limit the optimizer waits for all gradients."`
	BucketMB        float64 `toml:"bucket_mb" default:"25" unit:"MiB" over:"0" max:"65536" doc:"Largest bucket of gradients that is reduced at once."`
	FirstBucketMB   float64 `toml:"first_bucket_mb" default:"1" unit:"MiB" over:"0" max:"65536" doc:"Largest first bucket: small, so that communication starts early."`
	MaxBadSteps     int     `toml:"max_bad_steps" default:"10" unit:"steps" min:"0" doc:"With clip_norm: steps in a row with gradients that are not finite, after which the run ends; they are skipped on all ranks. 0: no limit. Without clip_norm gradients are not looked at. A loss that is not finite ends the run at once, always."`
	TimeoutSeconds  float64 `toml:"collective_timeout_seconds" default:"300" unit:"seconds" over:"0" doc:"How long a rank waits for another in one collective without a sign of life from it. Then the run ends with exit code 124, and the error names the rank."`
	LongWorkSeconds float64 `toml:"long_work_seconds" default:"3600" unit:"seconds" over:"0" doc:"How long a rank waits for another that is at long work and makes progress: writing or checking a checkpoint, opening data, filling caches, reading weights, compiling."`
	GraceSeconds    float64 `toml:"grace_seconds" default:"30" unit:"seconds" over:"0" doc:"Where gotrain starts the ranks itself: how long they may take to end after they were asked to. Then they are asked to abandon the step under way, or killed when a rank failed; after twice the time they are killed. A rank that saves is waited for."`
	CheckEvery      int     `toml:"state_check_every_steps" default:"500" unit:"steps" min:"0" doc:"Steps between comparisons of all weights and optimizer state over the ranks; 0: never."`
}

// Optim is the section [optim].
type Optim struct {
	Name            string  `toml:"name" default:"sgd" oneof:"sgd|adamw|adam|lars" doc:"sgd; adamw (arXiv 1711.05101); adam, with the decay in the gradient; lars, for very large batches (arXiv 1708.03888)."`
	LR              float64 `toml:"lr" default:"auto" auto:"0.1; adamw and adam: 0.001" over:"0" max:"1000" doc:"Peak learning rate, for a global batch of lr_batch samples where lr_scaling is not none."`
	LRScaling       string  `toml:"lr_scaling" default:"none" oneof:"none|linear|sqrt" doc:"How lr grows with the global batch. linear: lr * global_batch / lr_batch (arXiv 1706.02677). sqrt: with the root of that."`
	LRBatch         int     `toml:"lr_batch" default:"256" unit:"samples" min:"1" doc:"Global batch that lr is meant for."`
	Momentum        float64 `toml:"momentum" default:"0.9" min:"0" max:"0.9999" doc:"sgd, lars: share of the last direction that is kept."`
	Nesterov        bool    `toml:"nesterov" default:"false" doc:"sgd: look ahead along the momentum."`
	Dampening       float64 `toml:"dampening" default:"0" min:"0" max:"1" doc:"sgd: part of the gradient that does not enter the momentum."`
	WeightDecay     float64 `toml:"weight_decay" default:"auto" auto:"1e-4; adamw: 0.01; adam: 0" min:"0" max:"10" doc:"Decay of weights."`
	DecoupledDecay  bool    `toml:"decoupled_decay" default:"false" doc:"sgd: subtract lr * weight_decay * weight instead of adding the decay to the gradient. adamw always does."`
	NoDecayNormBias bool    `toml:"no_decay_norm_bias" default:"true" doc:"No decay (and no layer-wise rate) on the gains and shifts of norms and on biases."`
	Beta1           float64 `toml:"beta1" default:"0.9" min:"0" max:"0.999999" doc:"adam, adamw: memory of the gradient."`
	Beta2           float64 `toml:"beta2" default:"0.999" min:"0" max:"0.999999" doc:"adam, adamw: memory of its square."`
	Eps             float64 `toml:"eps" default:"auto" auto:"1e-8; lars: 1e-9" min:"0" max:"1" doc:"adam, adamw, lars: added to the denominator."`
	Trust           float64 `toml:"trust_coefficient" default:"0.001" over:"0" max:"1" doc:"lars: local rate of a layer relative to |w|/|g|."`
}

// Schedule is the section [schedule].
type Schedule struct {
	Kind             string    `toml:"kind" default:"cosine" oneof:"constant|linear|cosine|step|wsd" doc:"Shape after the warm-up: constant; linear to min_lr_ratio; cosine to min_lr_ratio; step, times gamma at each milestone; wsd, constant and a decay at the end."`
	WarmupSteps      int       `toml:"warmup_steps" default:"0" unit:"steps" min:"0" doc:"Steps of linear warm-up: step s has lr * (s+1) / warmup."`
	WarmupEpochs     float64   `toml:"warmup_epochs" default:"0" unit:"epochs" min:"0" doc:"The same in epochs. Give one of the two."`
	MinLRRatio       float64   `toml:"min_lr_ratio" default:"0" min:"0" max:"1" doc:"linear, cosine, wsd: the last learning rate as a part of the peak."`
	MilestonesSteps  []int     `toml:"milestones_steps" default:"[]" unit:"steps" doc:"step: where the rate drops, rising."`
	MilestonesEpochs []float64 `toml:"milestones_epochs" default:"[]" unit:"epochs" doc:"The same in epochs. Give one of the two."`
	Gamma            float64   `toml:"gamma" default:"0.1" over:"0" max:"1" doc:"step: factor of a drop."`
	DecayFraction    float64   `toml:"decay_fraction" default:"0.2" over:"0" max:"1" doc:"wsd: last part of the run, in which the rate falls."`
}

// Eval is the section [eval].
type Eval struct {
	Enabled     bool `toml:"enabled" default:"true" doc:"Evaluate at all."`
	EveryEpochs int  `toml:"every_epochs" default:"0" unit:"epochs" min:"0" doc:"Epochs between evaluations."`
	EverySteps  int  `toml:"every_steps" default:"0" unit:"steps" min:"0" doc:"Steps between evaluations. Give at most one of the two."`
	Batch       int  `toml:"batch_per_rank" default:"auto" auto:"that of train" unit:"samples" min:"1" max:"1048576" doc:"Batch of one rank in evaluation."`
}

// Checkpoint is the section [checkpoint].
type Checkpoint struct {
	Enabled     bool   `toml:"enabled" default:"true" doc:"Write checkpoints."`
	Dir         string `toml:"dir" default:"auto" auto:"OUTPUT_DIR/checkpoints" doc:"Their folder; counts from the working directory."`
	EveryEpochs int    `toml:"every_epochs" default:"0" unit:"epochs" min:"0" doc:"Epochs between checkpoints."`
	EverySteps  int    `toml:"every_steps" default:"0" unit:"steps" min:"0" doc:"Steps between checkpoints. Give at most one of the two."`
	KeepLast    int    `toml:"keep_last" default:"2" min:"2" doc:"How many are kept. At least 2, for the newest may be damaged."`
	Resume      string `toml:"resume" default:"auto" doc:"auto: go on from the newest good checkpoint in dir, if there is one. none: start anew. Anything else: the path of the checkpoint to go on from, which must exist."`
}

// Log is the section [log].
type Log struct {
	EverySteps  int     `toml:"every_steps" default:"1" unit:"steps" min:"1" doc:"Steps between lines on the console; files have every step."`
	Console     bool    `toml:"console" default:"true" doc:"Print lines on the console."`
	JSONL       bool    `toml:"jsonl" default:"true" doc:"Append one JSON object an event to OUTPUT_DIR/metrics.jsonl. A run that resumes moves the events of steps that it makes again to metrics.superseded.jsonl."`
	TensorBoard bool    `toml:"tensorboard" default:"false" doc:"Write event files for TensorBoard to OUTPUT_DIR/tb. A run that resumes adds a file that tells TensorBoard to forget the points of steps that it makes again."`
	Trace       bool    `toml:"trace" default:"false" doc:"Write a Chrome trace of each rank to OUTPUT_DIR/trace-rankN.json."`
	PeakTFLOPS  float64 `toml:"peak_tflops" default:"0" unit:"10^12 FLOP/s" min:"0" doc:"Peak of one rank's share of the device, for MFU; 0: what the device says, and no MFU where it does not."`
}
