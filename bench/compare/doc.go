// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

// Command compare measures gotrain next to its peers on one machine: training steps of ResNet-50, of Llamas and of vision transformers against PyTorch DDP, the
// first two also against a bare program on the same kernel library ("the C reference"), all-reduces in shared memory and over TCP against gloo, Open MPI and
// bare programs, and generation against memory bandwidth.
//
//	go run ./bench/compare                                # ResNet-50 and all-reduces, three rounds
//	go run ./bench/compare -what step -dtype bf16 -ranks 2x1 -rounds 5
//	go run ./bench/compare -what vit -size deit-s -dtype bf16
//	go run ./bench/compare -what allreduce
//	go run ./bench/compare -what llama -shape stories15M,d512 -batch 4,8,16 -seq 256 -dtype f32,bf16 -ranks 2x1,1x2
//	go run ./bench/compare -what generate -shape stories15M,d512 -batch 1,4 -ranks 2x1,1x2      # with 1 and with 2 threads
//
// Contestants run in turn (A B C A B C …), never at once, so that a change of the machine's mood falls on all of them; ratios are taken
// between the medians over the rounds. While a program runs, the CPU time that others used is measured; a run in which it exceeds -disturbed percent
// is marked with "!" and left out of the medians if the contestant has an undisturbed one.
//
// PyTorch trains as it is and with torch.compile; the faster of the two counts, setting by setting, and its ratio has a star.
//
// The steps of a Llama have one more contestant, the kernels (bench/kernels): forward, backward and AdamW of one rank, each kernel timed alone, so that the
// ratio to it is the part of the time in which gotrain does nothing but compute. The column "at work" is gotrain's own npu_util: the part of
// a step in which the device's queue was not empty. The mark is written for sequences of 256 tokens and leaves others out.
//
// Generation is bound by memory, because each token needs all weights. Every round reads a buffer as large as the weights with as many threads
// (bench/bandwidth), lets gotrain write, and reads again; the bound is the higher speed divided by the bytes of the weights, times the texts that are written
// at once. If it is exceeded it is none, and the benchmark fails. llama.cpp, where it is installed, writes one text with the same weights and threads.
// The caches of keys and values are not counted, so the bound cannot quite be reached. Models have random weights and no token that ends a
// text; the likeliest token is taken.
//
// The all-reduces over TCP ("net") compare gotrain with a bare program over plain sockets ("the mark"), gloo and Open MPI: over the loopback interface, between
// network namespaces behind a bridge (-net veth), and there with a limit on what each may send (-net 1gbit). The best of the rounds counts, and the ratio is
// printed for each size; with a limit also the part of the wire's bound. The namespaces are made by bench/namespaces.sh and removed at the end; only root can.
//
// Another table has the same with each codec of gradients, from 256 KiB to 16 MiB, and how many times faster than float32 that is; "net-codec" prints it
// alone.
//
//	go run ./bench/compare -what net -net lo,veth,10gbit,1gbit -world 2,4 -mark-tcp './mark_tcp -c cubic'
//
// The speed of the codecs alone ("encode") is that of a benchmark of package ddp/comm/reduce, with AVX-512 and with AVX2, beside a bare program.
//
// A contestant that is not installed costs a sentence, not the run. Flags and variables say where they are; see README.md one folder up:
//
//	-gotrain CMD        command line of gotrain, with places to fill (default: built from this checkout); not for generate
//	BENCH_PYTHON        Python with torch (default python3)
//	BENCH_LLAMACPP      Python with llama-cpp-python, gguf and safetensors (default BENCH_PYTHON)
//	BENCH_JAX           Python with jax; without it JAX does not take part
//	BENCH_MARK          the bare ResNet-50: BENCH_MARK BATCH f32|bf16 STEPS prints "… N img/s (best N), step N ms, …"
//	BENCH_MARK_LLAMA    the bare Llama: BENCH_MARK_LLAMA SHAPE BATCH f32|bf16 STEPS prints "… N tok/s (best N), step N ms, …"
//	BENCH_MARK_TCP      the bare all-reduce over TCP: BENCH_MARK_TCP -w RANKS -a auto|int8 -h BYTES [-x BYTES] [-N NAMESPACES -A ADDRESSES] prints JSON lines
//	BENCH_MARK_CODEC    bare codecs: prints "128 KiB of f32", and below it lines "NAME 12.3 GB/s of f32" with the names of BenchmarkCodec
//	BENCH_FLOOR         prints lines "shm allreduce P=N BYTES B TIME us …": the memory floor of an all-reduce
package main
