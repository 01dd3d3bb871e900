package recipes

// Recipe is a complete training run as data. Create one with Load, Decode or Default; the zero value is not a valid recipe.
//
// The tags of a field are its contract: toml is its key, doc its documentation, default its value when the file does not set it ("auto": derived
// from other keys, as the tag auto describes), unit its unit, oneof the allowed words or numbers, min and max the allowed range, over an exclusive lower bound.
type Recipe struct {
	Run        Run         `toml:"run" doc:"The run as a whole. Give exactly one of steps and epochs."`
	Model      Model       `toml:"model" doc:"The network."`
	Data       Data        `toml:"data" doc:"The samples, for training and for evaluation."`
	Text       TextSection `toml:"text" doc:"How text becomes samples when data.kind is text or tokens. A sample is a sequence of tokens; the target of each token is the next token."`
	Train      Train       `toml:"train" doc:"How a step is computed, and on which device."`
	Comm       Comm        `toml:"comm" doc:"How ranks exchange gradients and everything else, within a machine and between machines."`
	Optim      Optim       `toml:"optim" doc:"The optimizer."`
	Schedule   Schedule    `toml:"schedule" doc:"The learning rate over time: a linear warm-up, then the shape given by kind. It counts optimizer steps, regardless of the number of ranks."`
	Eval       Eval        `toml:"eval" doc:"Evaluation on held-out samples. Every sample counts exactly once, with any number of ranks. Without every_epochs and every_steps it runs once, at the end."`
	Checkpoint Checkpoint  `toml:"checkpoint" doc:"Checkpoints. One is always written at the end and when the run is stopped. They are complete: a resumed run is bit-identical to one that was never stopped."`
	Log        Log         `toml:"log" doc:"What the run logs, and where."`

	families map[string]any // the sections that families of networks have registered, by name: pointers to their keys
	origin   origin
	warnings []string
	taken    []string // from the environment
}

// Run is the section [run].
type Run struct {
	Name      string  `toml:"name" default:"auto" auto:"name of the recipe file" doc:"Name of the run, used in logs and for the output folder."`
	Seed      uint64  `toml:"seed" default:"1" max:"9223372036854775807" doc:"Seed of initial weights, sample order, augmentation and dropout. The same seed, recipe and number of ranks give bit-identical results."`
	OutputDir string  `toml:"output_dir" default:"auto" auto:"runs/NAME" doc:"Folder for logs, checkpoints and the resolved recipe, relative to the working directory. Only one run at a time may write there: a second one exits with code 73."`
	Steps     int     `toml:"steps" default:"0" unit:"optimizer steps" min:"0" doc:"Length of the run; 0: epochs decides. It counts updates, whatever their batch size: a run resumed with a different number of ranks makes the same total."`
	Epochs    float64 `toml:"epochs" default:"0" min:"0" doc:"Length of the run in passes over the training samples; 0: steps decides. A run resumed with a different number of ranks, batch or data completes the rest of its epochs (docs/resume.md)."`
}

// Model is the section [model].
type Model struct {
	Name             string    `toml:"name" default:"resnet" doc:"Model family. resnet is configured by the other keys of this section, the others by the section of their name."`
	Depth            int       `toml:"depth" default:"50" oneof:"18|34|50|101|152" doc:"Depth of the ResNet: basic blocks up to 34, bottlenecks from 50 (arXiv 1512.03385)."`
	Width            int       `toml:"width" default:"64" unit:"channels" min:"1" max:"4096" doc:"Channels of the first stage."`
	Classes          int       `toml:"classes" default:"0" min:"0" doc:"Number of classes; 0: the number in the training data."`
	SmallStem        bool      `toml:"small_stem" default:"false" doc:"Stem for images of about 32 pixels: a 3x3 convolution with stride 1 and no pooling."`
	Version          string    `toml:"version" default:"v1.5" oneof:"v1|v1.5" doc:"Where a bottleneck applies its stride: v1.5 in the 3x3 convolution (torchvision), v1 in the first 1x1 (the paper, Keras)."`
	ZeroInitResidual bool      `toml:"zero_init_residual" default:"true" doc:"Initialise the last norm of each block with weight 0, so that blocks start as the identity (arXiv 1706.02677)."`
	NormEps          float64   `toml:"norm_eps" default:"1e-5" over:"0" max:"1" doc:"Added to the variance in batch norms."`
	NormMomentum     float64   `toml:"norm_momentum" default:"0.1" over:"0" max:"1" doc:"Weight of the newest batch in the running statistics."`
	DropPath         float64   `toml:"drop_path" default:"0" min:"0" max:"0.99" doc:"resnet, vit: stochastic depth (arXiv 1603.09382): probability that a sample skips the residual branches of the last block in training; it rises linearly from 0 in the first block, as in timm."`
	LabelSmoothing   float64   `toml:"label_smoothing" default:"0" min:"0" max:"0.99" doc:"Fraction of the target spread evenly over all classes."`
	Loss             string    `toml:"loss" default:"ce" oneof:"ce|bce" doc:"What training minimises: ce, cross-entropy of the classes; bce, binary cross-entropy of each class on its own (arXiv 2110.00476). Evaluation always reports cross-entropy without smoothing, so that losses can be compared."`
	BCEThreshold     float64   `toml:"bce_threshold" default:"-1" min:"-1" max:"0.999" doc:"loss bce: targets become 1 where they are above this number and 0 elsewhere (timm's target_threshold), so that both classes of a mixed sample are present. Below 0: targets stay as they are."`
	BCESum           bool      `toml:"bce_sum_classes" default:"false" doc:"loss bce: the loss of a sample is the sum over the classes, not their mean (timm's sum_classes)."`
	ClassWeights     []float64 `toml:"class_weights" default:"[]" doc:"Weight of the loss of each class, one number a class in the order of the classes, for classes of different sizes or importance. Losses are averaged as by PyTorch's CrossEntropyLoss(weight=): divided by the sum of the weights of the labels over the whole global batch. Evaluation is not weighted. Empty: none."`
	ClassWeighting   string    `toml:"class_weighting" default:"none" oneof:"none|balanced" doc:"balanced: class_weights from the number of training samples, N / (K * N_class), as scikit-learn's class_weight = balanced. To draw rare classes more often instead, see data.balanced."`
	InitFrom         string    `toml:"init_from" default:"" doc:"Weights to start from: a safetensors file or a checkpoint folder; for llama also a Hugging Face folder, a folder in Meta's format, or a llama2.c .bin file. Searched next to the recipe, then in the working directory, then in the bundled data (stories260k). Empty: random weights."`
	Freeze           string    `toml:"freeze" default:"" doc:"Parameters that keep their values: names or patterns with *, separated by spaces (conv1.* bn1.* layer1.*). They have no gradient and no optimizer state; checkpoints hold them. Running statistics of norms are no parameters and still follow the data. gotrain plan --parameters lists all names."`
	InitHelp         string    `toml:"init_help" default:"" doc:"What to do when init_from is missing, such as the commands that fetch it. Shown as the hint of the error message."`
	InitPartial      bool      `toml:"init_partial" default:"false" doc:"Parameters that are missing from init_from, or have a different shape there, keep their random initialisation (a new classifier). When false they are an error."`
	InitIgnore       string    `toml:"init_ignore" default:"" doc:"Tensors to ignore when the weights have them and the model does not: names or patterns with *, separated by spaces (fc.* or just *). They are skipped and listed in the log. Any other tensor unknown to the model is an error, in init_from, on resume and in eval, because it means that the weights belong to a different model."`
}

// Data is the section [data].
type Data struct {
	Kind            string    `toml:"kind" default:"imagefolder" oneof:"imagefolder|csv|webdataset|idx|packed|text|tokens|synthetic" doc:"imagefolder: ROOT/SPLIT/CLASS/picture.jpg. csv: a CSV file with the path and the label of each picture. webdataset: tar shards of pictures and labels, as WebDataset makes them. idx: files of the MNIST family. packed: records of a label (int32) and raw pixels (see package train/data/images). text: text files, tokenised when the run starts. tokens: shards written by gotrain tokenize. synthetic: noise, for benchmarks."`
	Root            string    `toml:"root" default:"" doc:"Folder of the data set, or the name of a bundled one (flowers, fashion-mini, shakespeare). Not used by synthetic."`
	Shared          string    `toml:"shared" default:"auto" oneof:"auto|true|false" doc:"Whether all machines of a job see the same data folder. auto: found out when the run starts, which says so. true: rank 0 lists the pictures of an imagefolder, a csv or webdataset for all ranks. false: each machine has a copy of its own, which its ranks list; copies must be equal."`
	TrainSplit      string    `toml:"train_split" default:"auto" auto:"train; csv: train.csv; webdataset: train*.tar; packed: train*.bin; text: train*.txt" doc:"Training split: a folder below root (imagefolder), a file below root (csv), train or test (idx), a file or pattern below root (webdataset, packed, text; webdataset also takes braces: train-{000..099}.tar), or the name of a split (tokens)."`
	EvalSplit       string    `toml:"eval_split" default:"auto" auto:"val; csv: val.csv; webdataset: val*.tar; idx: test; packed: val*.bin; text: val*.txt" doc:"Held-out split, named like train_split. csv: where both name the same file, its split column or eval_fraction says which rows are held out."`
	PathColumn      string    `toml:"path_column" default:"" doc:"csv: title or number (from 1) of the column with the paths. Empty: a usual title (path, file, filename, image …), or the first column of a file without titles. Paths are relative to the CSV file."`
	LabelColumn     string    `toml:"label_column" default:"" doc:"csv: title or number of the column with the labels, which are names or numbers from 0. Empty: a usual title (label, class, target …), or the second column. webdataset: the field of a sample's JSON that holds the label; empty: the member .cls, else a usual field of the JSON, else .txt."`
	SplitColumn     string    `toml:"split_column" default:"" doc:"csv: title or number of the column that says which rows are for training (train) and which are held out (val, valid, validation, eval, dev), where train_split and eval_split name the same file. Empty: the title split, set or subset."`
	EvalFraction    float64   `toml:"eval_fraction" default:"0" min:"0" max:"0.99" doc:"csv: part of the rows that is held out, by a hash of their paths, where train_split and eval_split name the same file. In a file with a split column, a part of its rows for training; the others are not used. 0: the split column says it."`
	ImageSize       int       `toml:"image_size" default:"auto" auto:"224 for imagefolder, csv, webdataset and synthetic, 0 for idx and packed" unit:"pixels" min:"0" max:"8192" doc:"Width and height of a sample. 0: the stored size (idx and packed only)."`
	Channels        int       `toml:"channels" default:"auto" auto:"3; idx: 1" oneof:"1|3" doc:"3: colour. 1: greyscale (idx, packed, synthetic)."`
	Augment         string    `toml:"augment" default:"auto" auto:"random_resized_crop for imagefolder, csv and webdataset, otherwise none" oneof:"none|random_resized_crop|pad_crop" doc:"none: as in evaluation. random_resized_crop: a crop of random size, aspect ratio and position (as in torchvision). pad_crop: a random shift by up to pad_pixels, for small images. The last two also flip at random."`
	FlipProbability float64   `toml:"flip_probability" default:"0.5" min:"0" max:"1" doc:"Probability of a horizontal flip when augment is not none."`
	CropArea        []float64 `toml:"crop_area" default:"[0.08, 1.0]" doc:"Smallest and largest fraction of the image area that random_resized_crop keeps."`
	CropRatio       []float64 `toml:"crop_ratio" default:"[0.75, 1.3333333333333333]" doc:"Smallest and largest aspect ratio (width/height) of that crop."`
	PadPixels       int       `toml:"pad_pixels" default:"4" unit:"pixels" min:"0" max:"1024" doc:"Border added by pad_crop."`
	Policy          string    `toml:"policy" default:"none" oneof:"none|randaugment|trivialaugment" doc:"Random operations on colours and geometry after the crop. randaugment (arXiv 1909.13719): a few, of one magnitude. trivialaugment (arXiv 2103.10158): one, of any magnitude, with nothing to tune. Evaluation is never augmented."`
	RandOps         int       `toml:"randaugment_ops" default:"2" min:"1" max:"32" doc:"Operations a picture."`
	RandMagnitude   float64   `toml:"randaugment_magnitude" default:"9" min:"0" max:"10" doc:"Strength of the operations, 0 to 10. torchvision counts to 30: a third of its number."`
	RandStd         float64   `toml:"randaugment_std" default:"0.5" min:"0" max:"10" doc:"Standard deviation of the magnitude, drawn for each operation (timm's mstd)."`
	RandProbability float64   `toml:"randaugment_probability" default:"0.5" over:"0" max:"1" doc:"Probability of each operation. torchvision's is 1."`
	RandSpace       string    `toml:"randaugment_space" default:"timm" oneof:"timm|torchvision" doc:"Whose operations and ranges: timm's with increasing severity (rand-mM-mstdS-inc1), or torchvision's."`
	ColorJitter     []float64 `toml:"color_jitter" default:"[0.0, 0.0, 0.0, 0.0]" doc:"Random change of brightness, contrast, saturation and hue, as in torchvision's ColorJitter: factors from 1-x to 1+x, and -x to x turns of hue (at most 0.5)."`
	EraseProb       float64   `toml:"erasing_probability" default:"0" min:"0" max:"1" doc:"Probability that a random rectangle of a sample is erased (arXiv 1708.04896)."`
	EraseFill       string    `toml:"erasing_fill" default:"noise" oneof:"noise|mean" doc:"What an erased rectangle holds: normal noise (timm's pixel mode), or data.mean."`
	EraseArea       []float64 `toml:"erasing_area" default:"[0.02, 0.3333333333333333]" doc:"Smallest and largest fraction of the area that is erased."`
	Mixup           float64   `toml:"mixup" default:"0" min:"0" max:"100" doc:"Samples become mixtures of two (arXiv 1710.09412); the part of each has a beta distribution with both shapes this number. 0: no mixup. Targets are mixed alike, with label_smoothing. The batch of a rank must be even."`
	Cutmix          float64   `toml:"cutmix" default:"0" min:"0" max:"100" doc:"A rectangle of a sample comes from another (arXiv 1905.04899); 1 minus its area has a beta distribution with both shapes this number. 0: no cutmix. With mixup, each pair gets one of the two."`
	MixProbability  float64   `toml:"mix_probability" default:"1" over:"0" max:"1" doc:"Probability that a pair of samples is mixed."`
	CutmixShare     float64   `toml:"cutmix_share" default:"0.5" over:"0" max:"1" doc:"With mixup and cutmix: the part of mixed pairs that get cutmix."`
	Repeats         int       `toml:"repeats" default:"1" min:"1" max:"8" doc:"Repeated augmentation (arXiv 1902.05509): each sample of an epoch comes this many times, augmented anew, in or near the same global batch. An epoch keeps its length, so it holds a part of the samples."`
	Balanced        bool      `toml:"balanced" default:"false" doc:"Draw classes equally often: samples of small classes come several times an epoch, augmented anew, and only a part of those of large ones. An epoch keeps its length."`
	EvalResize      int       `toml:"eval_resize_pixels" default:"auto" auto:"image_size * 256 / 224 for imagefolder, csv and webdataset, otherwise 0" unit:"pixels" min:"0" max:"16384" doc:"In evaluation, the length to which the short side is resized before the centre crop. 0: no resizing."`
	PackedSize      int       `toml:"packed_size" default:"0" unit:"pixels" min:"0" max:"8192" doc:"Width and height of the images in packed records; 0: read from their header."`
	Mean            []float64 `toml:"mean" default:"auto" auto:"ImageNet's for 3-channel images, otherwise 0" doc:"Mean per channel, subtracted from pixel values (0 to 1)."`
	Std             []float64 `toml:"std" default:"auto" auto:"ImageNet's for 3-channel images, otherwise 1" doc:"Standard deviation per channel; pixel values are divided by it after the mean is subtracted."`
	Decoder         string    `toml:"decoder" default:"auto" oneof:"auto|turbo|go" doc:"JPEG decoder. auto: gotrain's own for ordinary files, for others libjpeg-turbo if it can be loaded, otherwise Go's. turbo: libjpeg-turbo must be there. go: Go's for all, several times slower and with other pixels."`
	Workers         int       `toml:"workers_per_rank" default:"0" min:"0" max:"256" doc:"Goroutines that load samples; 0: chosen from the number of cores."`
	MaxMegapixels   float64   `toml:"max_megapixels" default:"89" over:"0" max:"4096" doc:"Images whose header gives a larger size are rejected before any memory is allocated."`
	EXIFOrientation bool      `toml:"exif_orientation" default:"false" doc:"imagefolder, csv, webdataset: apply the EXIF orientation. false: use images as stored, like torchvision's ImageFolder; the run warns if that makes a difference."`
	Shuffle         bool      `toml:"shuffle" default:"true" doc:"Draw training samples in a new random order each epoch."`
	Tail            string    `toml:"tail" default:"drop" oneof:"drop|pad" doc:"What happens to the last samples of an epoch when they do not fill a batch on every rank. drop: they are skipped (different ones each epoch). pad: the batch is filled with rows that do not count."`
	BadFiles        string    `toml:"bad_files" default:"error" oneof:"error|skip" doc:"What to do with a sample that cannot be read. error: report it and end the run. skip: report it and leave it out."`
	BadFileLimit    int       `toml:"bad_file_limit" default:"100" min:"1" doc:"With bad_files = skip: the run ends if more distinct samples than this are bad."`
	Published       int       `toml:"published_samples" default:"0" unit:"samples" min:"0" doc:"Number of training samples, used by gotrain plan when the data are not available; 0: unknown. A run counts the samples it finds."`
	Samples         int       `toml:"synthetic_samples" default:"1024" min:"1" doc:"Synthetic samples per epoch."`
	SyntheticEval   int       `toml:"synthetic_eval_samples" default:"64" min:"1" doc:"Synthetic held-out samples."`
}

// TextSection is the section [text].
type TextSection struct {
	Tokenizer string `toml:"tokenizer" default:"" doc:"Tokenizer for data.kind = text: a SentencePiece .model, a Hugging Face tokenizer.json or its folder, a tiktoken rank file, a llama2.c .bin, or the name of a bundled data set that has one (stories260k). Optional for data.kind = tokens: if given, it must be the one that the shards were made with, and it is copied into checkpoints."`
	Sequence  int    `toml:"sequence" default:"0" unit:"tokens" min:"0" max:"16777216" doc:"Tokens per sample; 0: llama.context, or that of llama.size."`
	Separator string `toml:"separator" default:"" doc:"text: how files are split into documents. Empty: one document per file. line: one per line. blank: at empty lines. Anything else: at lines equal to this text."`
	BOS       bool   `toml:"bos" default:"true" doc:"text: put the tokenizer's begin-of-text token, if it has one, before each document."`
	EOS       bool   `toml:"eos" default:"true" doc:"text: put the tokenizer's end-of-text token, if it has one, after each document."`
	Apart     bool   `toml:"documents_apart" default:"true" doc:"When several documents share a sequence, restrict attention to the token's own document and do not train on predicting the first token of the next document."`
}

// Train is the section [train].
type Train struct {
	Ranks           int     `toml:"ranks" default:"auto" auto:"the number of devices that train.device finds on this machine, such as NPUs; 1 for cpu and ref" min:"1" max:"4096" doc:"Processes to start on this machine, one for each device. Under a launcher (mpirun, torchrun, srun, hcclrun), the launcher decides and this key is ignored."`
	Batch           int     `toml:"batch_per_rank" default:"16" unit:"samples" min:"1" max:"1048576" doc:"Micro-batch of one rank. The global batch is batch_per_rank * accumulate_steps * ranks."`
	Accumulate      int     `toml:"accumulate_steps" default:"1" min:"1" max:"1048576" doc:"Micro-batches per optimizer step."`
	DType           string  `toml:"dtype" default:"f32" oneof:"f32|bf16|f16" doc:"Type of activations and of the working copies of weights. Master weights, statistics, losses and reductions are always f32. bf16 halves activation memory on every processor, but is faster only on processors with bf16 instructions (AVX-512 BF16, AMX). Others compute in f32 and report so at startup. f16 is for accelerators; cpu does not have it, ref does (slowly). It needs loss scaling: see loss_scale."`
	LossScale       float64 `toml:"loss_scale" default:"0" min:"0" max:"1.7e38" doc:"dtype f16: factor on the loss, so that small gradients do not vanish; the optimizer divides by it (arXiv 1710.03740). 0: dynamic, as the next keys say. Above 0: this value, fixed. A step whose gradients or loss overflow is skipped on all ranks: it counts as a step of the run and of the data, but neither for the schedule nor for the optimizer."`
	ScaleInit       float64 `toml:"loss_scale_init" default:"65536" over:"0" max:"1.7e38" doc:"dtype f16: the first dynamic scale. The first steps are often skipped, until it has come down to what the model can take."`
	ScaleInterval   int     `toml:"loss_scale_growth_interval" default:"2000" unit:"steps" min:"1" doc:"dtype f16: consecutive steps without overflow after which the scale grows."`
	ScaleGrowth     float64 `toml:"loss_scale_growth_factor" default:"2" over:"1" max:"65536" doc:"dtype f16: factor by which it grows."`
	ScaleBackoff    float64 `toml:"loss_scale_backoff_factor" default:"0.5" over:"0" max:"0.999" doc:"dtype f16: factor by which the scale shrinks after a step that was skipped."`
	ScaleMin        float64 `toml:"loss_scale_min" default:"1" over:"0" max:"1.7e38" doc:"dtype f16: smallest scale. A step that overflows at this scale ends the run, with exit code 76."`
	Device          string  `toml:"device" default:"auto" oneof:"auto|npu|cpu|ref" doc:"auto: npu if the machine has one, otherwise cpu if its library can be loaded, otherwise ref with a warning. npu: an Ascend NPU, one for each rank, through CANN. ref is pure Go: correct, but slow."`
	DeviceOptions   string  `toml:"device_options" default:"" doc:"Options of the device, as KEY=VALUE separated by blanks. npu has deterministic=false (faster, but a run cannot be repeated bit by bit), allow_hf32=true, exact_dw=true, debug_sync=true (an error on the device names its op), memory_mib=N, device=N and experimental=true, and for several ranks hccl_buffer_mb, hccl_expansion and hccl_check; cpu has layout, onednn and bf16=auto|native|f32 (how products of bf16 are computed: by measurement, by bf16 instructions, or in float32); ref, for tests of programs, has memory=separate (the host cannot access device memory) and memory=strict. An unknown option is an error."`
	Threads         int     `toml:"threads_per_rank" default:"0" min:"0" max:"1024" doc:"Compute threads; 0: the cores of this machine divided by its ranks, limited by the CPU quota (cgroup)."`
	PinCPUs         bool    `toml:"pin_cpus" default:"true" doc:"Pin each rank to its own cores. Applies only when gotrain starts the ranks itself and there are enough cores."`
	Recompute       string  `toml:"recompute" default:"none" oneof:"none|layer" doc:"layer: keep only each layer's output and recompute the rest in the backward pass (arXiv 1604.06174): much less memory, about a third more arithmetic, identical results. For models built from layers, such as llama."`
	ConvAlgorithm   string  `toml:"conv_algorithm" default:"auto" oneof:"auto|direct|winograd" doc:"How convolutions are computed. auto: by the fastest algorithm for each, found by a measurement of a second that is made once a machine and kept in the user's cache. winograd: 3x3 convolutions of stride 1 by Winograd's algorithm (arXiv 1509.09308) wherever the device has it, with fewer multiplications and a larger rounding error, in f32 and bf16. direct: never. In bf16, auto also takes ones that round products, where they are faster: up to seven times the error of rounding a result once. Rank 0 decides for all ranks, the checkpoint keeps the choice, and a resumed run follows it."`
	MemoryLimitMB   float64 `toml:"memory_limit_mb" default:"0" unit:"MiB" min:"0" max:"1e9" doc:"Memory that a rank may take, of what gotrain plan totals; 0: no limit. If the activations do not fit, results of the forward pass that are cheap to make (norms, SwiGLU, element-wise functions, conversions) are dropped and recomputed in the backward pass, as few as it takes, with identical results; gotrain plan shows which, and what it costs. A limit that cannot be met is an error. With recompute = layer, of what that leaves."`
	ClipNorm        float64 `toml:"clip_norm" default:"0" min:"0" doc:"Maximum global L2 norm of the gradients; 0: no clipping. With clipping, the optimizer waits for all gradients."`
	BucketMB        MiB     `toml:"bucket_mb" default:"25" unit:"MiB" over:"0" max:"65536" doc:"Largest gradient bucket, reduced in one collective. auto: buckets are cut so that, by a simulation with the times of kernels and the measured network, the least communication is exposed; first_bucket_mb then does not count. The checkpoint keeps the choice."`
	FirstBucketMB   float64 `toml:"first_bucket_mb" default:"1" unit:"MiB" over:"0" max:"65536" doc:"Largest size of the first bucket; small, so that communication starts early."`
	MaxBadSteps     int     `toml:"max_bad_steps" default:"auto" auto:"10; dtype f16: 50" unit:"steps" min:"0" doc:"With clip_norm, or dtype f16: number of consecutive steps with non-finite gradients after which the run ends; such steps are skipped on all ranks. 0: no limit. Without either, gradients are not checked. A non-finite loss ends the run immediately; with dtype f16 its step is skipped like the others."`
	TimeoutSeconds  float64 `toml:"collective_timeout_seconds" default:"300" unit:"seconds" over:"0" doc:"How long a rank waits in a collective for another rank that shows no sign of life. Then the run ends with exit code 124, and the error names the rank."`
	LongWorkSeconds float64 `toml:"long_work_seconds" default:"3600" unit:"seconds" over:"0" doc:"How long a rank waits for another rank that is doing long work and making progress: writing or verifying a checkpoint, opening data, filling caches, reading weights, compiling."`
	GraceSeconds    float64 `toml:"grace_seconds" default:"30" unit:"seconds" over:"0" doc:"When gotrain starts the ranks itself: how long they may take to exit after they are asked to stop. Then they are asked to abandon the current step, or killed if a rank failed; after twice this time they are killed. A rank that is saving a checkpoint is always waited for."`
	CheckEvery      int     `toml:"state_check_every_steps" default:"500" unit:"steps" min:"0" doc:"Steps between comparisons of all weights and optimizer state across ranks; 0: never."`
}

// Comm is the section [comm].
type Comm struct {
	Transport     string  `toml:"transport" default:"auto" oneof:"auto|shm|tcp" doc:"auto: shared memory between ranks of one machine, TCP between machines. shm: all ranks must be on one machine. tcp: TCP also between ranks of one machine, for tests and measurements. Device memory of NPUs is exchanged by HCCL."`
	Topology      string  `toml:"topology" default:"auto" oneof:"auto|mesh|tree|ring" doc:"Algorithm of large reductions between machines. auto and mesh: every rank exchanges with every other; sums are in rank order, so they do not depend on the size of a message or on timing. tree: for many machines on slow switches; the same sums. ring: for an oversubscribed network; sums differ from the others' by rounding."`
	Interface     string  `toml:"interface" default:"" doc:"Network interface (eth1) or network (10.0.0.0/8) for traffic between machines. Empty: the one by which a machine reaches rank 0."`
	PortRange     string  `toml:"port_range" default:"" doc:"Range of TCP ports that ranks may listen on, such as 29500-29600, for firewalls. Empty: any free port."`
	Streams       int     `toml:"streams" default:"1" min:"1" max:"16" doc:"TCP connections between two ranks. More than one helps on links of 25 Gbit/s and more, with idle cores."`
	StartTimeout  float64 `toml:"start_timeout_seconds" default:"300" unit:"seconds" over:"0" doc:"How long the first ranks wait at the start until all ranks of all machines are there. Then the run ends with exit code 124, and the error names the missing ranks."`
	Heartbeat     float64 `toml:"heartbeat_seconds" default:"0.5" unit:"seconds" min:"0" max:"60" doc:"Time between signs of life of a rank on another machine. A rank that is silent for eight of them is given up. At least 0.1, or 0: no heartbeats, for debuggers."`
	Compress      string  `toml:"compress" default:"none" oneof:"none|f16|bf16|int8" doc:"Type in which gradients travel. f16, bf16: half the bytes. int8: a quarter, in blocks with a common scale and with error feedback. Of use only if the network is the bottleneck; the run says so if it is not."`
	CompressBlock int     `toml:"compress_block" default:"256" unit:"values" min:"32" max:"65536" doc:"int8: values with a common scale; a power of two."`
	ErrorFeedback bool    `toml:"compress_error_feedback" default:"true" doc:"int8: add what rounding has lost to the gradients of the next step (arXiv 1901.09847). It takes the memory of one more gradient."`
	CompressAfter int     `toml:"compress_warmup_steps" default:"100" unit:"steps" min:"0" doc:"Steps at the beginning of a run in which gradients travel as f32."`
}

// Optim is the section [optim].
type Optim struct {
	Name            string  `toml:"name" default:"sgd" oneof:"sgd|adamw|adam|lars|lamb" doc:"sgd; adamw (arXiv 1711.05101); adam, with weight decay added to the gradient; lars (arXiv 1708.03888) and lamb (arXiv 1904.00962, as timm has it), for very large batches."`
	LR              float64 `toml:"lr" default:"auto" auto:"0.1; adamw and adam: 0.001; lamb: 0.005" over:"0" max:"1000" doc:"Peak learning rate; for a global batch of lr_batch samples if lr_scaling is not none."`
	LRScaling       string  `toml:"lr_scaling" default:"none" oneof:"none|linear|sqrt" doc:"How lr scales with the global batch. linear: lr * global_batch / lr_batch (arXiv 1706.02677). sqrt: lr * sqrt(global_batch / lr_batch)."`
	LRBatch         int     `toml:"lr_batch" default:"256" unit:"samples" min:"1" doc:"Global batch that lr refers to."`
	Momentum        float64 `toml:"momentum" default:"0.9" min:"0" max:"0.9999" doc:"sgd, lars: momentum factor."`
	Nesterov        bool    `toml:"nesterov" default:"false" doc:"sgd: use Nesterov momentum."`
	Dampening       float64 `toml:"dampening" default:"0" min:"0" max:"1" doc:"sgd: fraction of the gradient that is not added to the momentum."`
	WeightDecay     float64 `toml:"weight_decay" default:"auto" auto:"1e-4; adamw: 0.01; adam: 0; lamb: 0.02" min:"0" max:"10" doc:"Weight decay coefficient."`
	DecoupledDecay  bool    `toml:"decoupled_decay" default:"false" doc:"sgd: subtract lr * weight_decay * weight instead of adding the decay to the gradient. adamw always does."`
	NoDecayNormBias bool    `toml:"no_decay_norm_bias" default:"true" doc:"Exclude the scales and shifts of norms, and biases, from weight decay (and from the layer-wise rate of lars and lamb)."`
	Beta1           float64 `toml:"beta1" default:"0.9" min:"0" max:"0.999999" doc:"adam, adamw, lamb: decay rate of the running average of the gradient."`
	Beta2           float64 `toml:"beta2" default:"0.999" min:"0" max:"0.999999" doc:"adam, adamw, lamb: decay rate of the running average of the squared gradient."`
	Eps             float64 `toml:"eps" default:"auto" auto:"1e-8; lars: 1e-9; lamb: 1e-6" min:"0" max:"1" doc:"adam, adamw, lars, lamb: added to the denominator."`
	Groups          []Group `toml:"group" default:"[]" doc:"Sets of parameters with settings of their own, one [[optim.group]] for each: name; match, names or patterns with * separated by spaces; lr_factor, a factor on the learning rate; weight_decay, in place of the one above for parameters that are decayed at all; frozen = true, which keeps their values. A parameter belongs to the first group that matches."`
	LayerDecay      float64 `toml:"layer_decay" default:"1" over:"0" max:"1" doc:"Factor on the learning rate of a layer for every layer behind it, so that a pretrained network changes little near its input (arXiv 2106.08254); 1: all layers learn equally fast. A layer is what parameter names have in common up to their first number (layer1.0, layers.3)."`
	EMADecay        float64 `toml:"ema_decay" default:"0" min:"0" max:"0.9999999" doc:"Keep an exponential moving average of weights and running statistics: average = decay * average + (1 - decay) * weights after each step but the first, which starts it; 0: none. Evaluation uses the average, and model.safetensors of a checkpoint holds it; raw.safetensors holds the weights that training continues with. It takes the memory of the weights once more."`
	EMAWarmup       bool    `toml:"ema_warmup" default:"true" doc:"With ema_decay: the decay of step n is at most 1 - n^(-2/3), so that the initial weights are forgotten quickly. false: the decay is constant."`
	Trust           float64 `toml:"trust_coefficient" default:"0.001" over:"0" max:"1" doc:"lars: learning rate of a layer relative to |w|/|g|."`
	TrustClip       bool    `toml:"trust_clip" default:"false" doc:"lamb: the ratio |w|/|step| that scales the step of a layer is 1 at most (LAMBC; timm's trust_clip)."`
	AlwaysAdapt     bool    `toml:"always_adapt" default:"false" doc:"lamb: also scale the steps of parameters without weight decay, which are AdamW's otherwise (timm's always_adapt)."`
}

// Schedule is the section [schedule].
type Schedule struct {
	Kind             string    `toml:"kind" default:"cosine" oneof:"constant|linear|cosine|step|wsd|plateau" doc:"Shape after the warm-up. constant. linear and cosine: decay to min_lr_ratio. step: multiply by gamma at each milestone. wsd: constant, then decay at the end. plateau: multiply by gamma whenever eval.monitor has not improved for plateau_patience evaluations, down to min_lr_ratio."`
	WarmupSteps      int       `toml:"warmup_steps" default:"0" unit:"steps" min:"0" doc:"Steps of linear warm-up: step s uses lr * (s+1) / warmup."`
	WarmupEpochs     float64   `toml:"warmup_epochs" default:"0" unit:"epochs" min:"0" doc:"The same in epochs. Give one of the two."`
	MinLRRatio       float64   `toml:"min_lr_ratio" default:"0" min:"0" max:"1" doc:"linear, cosine, wsd: final learning rate as a fraction of the peak. plateau: the lowest."`
	MilestonesSteps  []int     `toml:"milestones_steps" default:"[]" unit:"steps" doc:"step: the steps at which the rate drops, in increasing order."`
	MilestonesEpochs []float64 `toml:"milestones_epochs" default:"[]" unit:"epochs" doc:"The same in epochs. Give one of the two."`
	Gamma            float64   `toml:"gamma" default:"0.1" over:"0" max:"1" doc:"step: factor applied at each milestone. plateau: factor of a drop."`
	PlateauPatience  int       `toml:"plateau_patience" default:"5" unit:"evaluations" min:"1" doc:"plateau: evaluations in a row without improvement after which the learning rate drops."`
	DecayFraction    float64   `toml:"decay_fraction" default:"0.2" over:"0" max:"1" doc:"wsd: final fraction of the run during which the rate decays."`
}

// Eval is the section [eval].
type Eval struct {
	Enabled     bool    `toml:"enabled" default:"true" doc:"Whether to evaluate."`
	EveryEpochs int     `toml:"every_epochs" default:"0" unit:"epochs" min:"0" doc:"Epochs between evaluations."`
	EverySteps  int     `toml:"every_steps" default:"0" unit:"steps" min:"0" doc:"Steps between evaluations. Give at most one of the two."`
	Batch       int     `toml:"batch_per_rank" default:"auto" auto:"train.batch_per_rank" unit:"samples" min:"1" max:"1048576" doc:"Batch of one rank in evaluation."`
	Monitor     string  `toml:"monitor" default:"loss" doc:"The result of an evaluation that says which one is the best: loss, perplexity or a metric such as top1. Keys that act on it: patience, checkpoint.keep_best and schedule.kind = plateau."`
	MonitorMode string  `toml:"monitor_mode" default:"auto" oneof:"auto|min|max" doc:"Whether a lower or a higher result is better. auto: lower for loss and perplexity, higher for metrics."`
	MinDelta    float64 `toml:"min_delta" default:"0" min:"0" doc:"A result is better only if it is better by more than this."`
	Patience    int     `toml:"patience" default:"0" unit:"evaluations" min:"0" doc:"End the run, successfully, after so many evaluations in a row without improvement; 0: never."`
}

// Checkpoint is the section [checkpoint].
type Checkpoint struct {
	Enabled     bool   `toml:"enabled" default:"true" doc:"Whether to write checkpoints."`
	Dir         string `toml:"dir" default:"auto" auto:"OUTPUT_DIR/checkpoints" doc:"Checkpoint folder, relative to the working directory."`
	EveryEpochs int    `toml:"every_epochs" default:"0" unit:"epochs" min:"0" doc:"Epochs between checkpoints."`
	EverySteps  int    `toml:"every_steps" default:"0" unit:"steps" min:"0" doc:"Steps between checkpoints. Give at most one of the two."`
	KeepLast    int    `toml:"keep_last" default:"2" min:"2" doc:"Number of checkpoints to keep. At least 2, because the newest may be damaged."`
	KeepBest    bool   `toml:"keep_best" default:"false" doc:"Also keep the checkpoint of the best evaluation, by eval.monitor; one is written for it if none is due. The file best in dir has its name."`
	Resume      string `toml:"resume" default:"auto" doc:"auto: resume from the newest valid checkpoint in dir, if there is one. none: start from scratch. best: the one that keep_best has kept. Anything else: the path of the checkpoint to resume from, which must exist."`
}

// Log is the section [log].
type Log struct {
	EverySteps  int     `toml:"every_steps" default:"1" unit:"steps" min:"1" doc:"Steps between lines on the console; log files record every step."`
	Console     bool    `toml:"console" default:"true" doc:"Print lines on the console."`
	JSONL       bool    `toml:"jsonl" default:"true" doc:"Append one JSON object per event to OUTPUT_DIR/metrics.jsonl. A resumed run moves the events of steps that it repeats to metrics.superseded.jsonl."`
	TensorBoard bool    `toml:"tensorboard" default:"false" doc:"Write TensorBoard event files to OUTPUT_DIR/tb. A resumed run adds a file that makes TensorBoard discard the points of steps that are repeated."`
	Trace       bool    `toml:"trace" default:"false" doc:"Write a Chrome trace of each rank to OUTPUT_DIR/trace-rankN.json."`
	PeakTFLOPS  float64 `toml:"peak_tflops" default:"0" unit:"10^12 FLOP/s" min:"0" doc:"Peak throughput of one rank's share of the device, for MFU; 0: the value reported by the device, or no MFU if it reports none."`
}
