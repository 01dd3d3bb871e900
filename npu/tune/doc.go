// Package tune finds by measurement which of several algorithms and layouts a device is fastest with, once a machine, and remembers it.
//
//	t := tune.Tuner{}
//	c, rep, err := t.Choose(ctx, dev, stream, ops)     // the ops of a network, as planned without choices
//	…
//	opts.Algorithm = c.Algorithm                       // of graph.Options
//
// # What is decided
//
// A device that implements [npu.Algorithmic] lists the algorithms of an op. Each distinct convolution of a network, by kind, geometry and type
// ([Key]), is a contest between them. The first algorithm is the device's default and wins ties: another one must be faster than
// it by [Margin], so that noise alone does not decide. An algorithm that wants pictures in another layout than the default pays for the conversions.
//
// # How it is measured
//
// Contestants run in turn (A B A B) on the stream that will execute the network, on about as many pictures as make 2 GFLOP, or more where the device
// treats more in another way ([Formed]); the best time of each counts. A contest ends early if its result is clear. All of ResNet50 takes a second or two.
//
// # Where results are kept
//
// In a file of the user's cache ([usercache.Places]): one for each processor model, instruction set, library version, number of threads and [Version].
// What is in a folder that can only be read counts as well. One process measures at a time, and others wait for it and take its results, so all runs on a
// machine decide alike. A damaged file is replaced. If no folder can be written, or the disk is full, nothing is measured, and what is not known keeps the
// device's default: results of a run never depend on a measurement that the next run could not repeat.
//
// Choices change the last bits of results. Ranks of a job must therefore all use those of one rank, and a resumed run those of its checkpoint; package
// train does that.
package tune
