package predict

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/tune"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data/images"
)

// options are the settings of Open.
type options struct {
	model    train.Model
	network  *checkpoint.Network
	pictures *images.Preparation
	pixels   int
	classes  []string
	device   string
	threads  int
	extra    map[string]string
	compute  npu.DType
	batch    int
	workers  int
	conv     string
	tuner    tune.Tuner
	noFold   bool // for tests
}

// Option changes what Open does.
type Option func(*options)

// WithModel passes the network of a checkpoint that a program of your own trained: the same function. It must set train.Outputs.Logits.
func WithModel(m train.Model) Option { return func(o *options) { o.model = m } }

// WithNetwork describes the network where the checkpoint does not, or otherwise than the checkpoint does.
func WithNetwork(n checkpoint.Network) Option { return func(o *options) { o.network = &n } }

// WithPictures says how pictures are prepared, where the checkpoint does not, or otherwise than it does.
func WithPictures(p images.Preparation) Option { return func(o *options) { o.pictures = &p } }

// WithMaxPixels rejects larger pictures by their header, before memory is allocated for them. The default is images.DefaultMaxPixels, about 89 million: a
// server that gets pictures from anybody sets less.
func WithMaxPixels(n int) Option { return func(o *options) { o.pixels = n } }

// WithClasses names the classes by label, where the checkpoint does not.
func WithClasses(names []string) Option { return func(o *options) { o.classes = names } }

// WithDevice chooses a device family ("cpu", "npu", "ref"; "": the best that opens) and its number of compute threads (0: all cores of this process), and
// passes options that the device documents.
func WithDevice(family string, threads int, extra map[string]string) Option {
	return func(o *options) { o.device, o.threads, o.extra = family, threads, extra }
}

// WithCompute sets the dtype of activations. The default is that of the training; where the device lacks it, f32 with a warning.
func WithCompute(t npu.DType) Option { return func(o *options) { o.compute = t } }

// WithConvAlgorithm says how convolutions are computed. train.AutoConv, the default: as in the training that made the checkpoint, and otherwise by the fastest
// algorithm, which is measured once a machine. train.DirectConv and train.WinogradConv measure nothing, so that machines with the same library and instruction
// set agree.
func WithConvAlgorithm(name string) Option { return func(o *options) { o.conv = name } }

// WithBatch sets the largest batch: 32.
func WithBatch(n int) Option { return func(o *options) { o.batch = n } }

// WithWorkers sets how many pictures are decoded at the same time: as many as there are cores.
func WithWorkers(n int) Option { return func(o *options) { o.workers = n } }
