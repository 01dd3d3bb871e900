// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

// Command compare measures gotrain next to its peers on one machine: ResNet-50 training steps against PyTorch DDP and against a bare
// program on the same kernel library ("the mark"), and all-reduces against gloo, Open MPI and a floor.
//
//	go run ./bench/compare                                # all of it, three rounds
//	go run ./bench/compare -what step -dtype bf16 -ranks 2x1 -rounds 5
//	go run ./bench/compare -what allreduce
//
// Contestants run in turn (A B C A B C …), never at once, so that a change of the machine's mood falls on all of them; ratios are taken
// between the medians over the rounds. While a program runs, the CPU time that others used is measured; a run in which it exceeds -disturbed percent
// is marked with "!" and left out of the medians if the contestant has an undisturbed one.
//
// A contestant that is not installed costs a sentence, not the run. Flags and variables say where they are; see README.md one folder up:
//
//	-gotrain CMD    command line of gotrain, with places to fill (default: built from this checkout)
//	BENCH_PYTHON    Python with torch (default python3)
//	BENCH_MARK      the bare program: BENCH_MARK BATCH f32|bf16 STEPS prints "… N img/s (best N), step N ms, …"
//	BENCH_FLOOR     prints lines "shm allreduce P=N BYTES B TIME us …": the memory floor of an all-reduce
package main
