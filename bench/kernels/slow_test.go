// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// heavy are the kinds that a step consists of.
var heavy = regexp.MustCompile(`(?m)^  (conv2d\S*|matmul \S+|linear_cross_entropy\S*|attention\S*|batchnorm\S*|maxpool\S*) +(\S+) `)

// No heavy kernel of a training step in bf16 is one of plain loops, of Go or of the library, whatever instructions the processor has: such
// a step takes minutes. Each instruction set is a process of its own, as the library looks at the processor once.
func TestNoPlainLoops(t *testing.T) {
	if args := os.Getenv("KERNELS_TEST_ARGS"); args != "" {
		if err := run(t.Context(), strings.Fields(args), os.Stdout); err != nil {
			t.Fatal(err)
		}
		return
	}
	dev, err := npu.Open("cpu", npu.Options{Threads: 1})
	if err != nil || dev.Info().Detail == "without oneDNN" {
		t.Skipf("the cpu device is not there: %v", err)
	}
	dev.Close()
	for _, isa := range []string{"", "avx512", "avx2"} {
		for _, shape := range []string{"resnet50", "stories15M"} {
			t.Run(fmt.Sprintf("%s/%s", cmp.Or(isa, "native"), shape), func(t *testing.T) {
				cmd := exec.Command(os.Args[0], "-test.run", "^TestNoPlainLoops$")
				cmd.Env = append(os.Environ(), "GOTRAIN_MAX_ISA="+isa,
					fmt.Sprintf("KERNELS_TEST_ARGS=-shape %s -batch 1 -seq 64 -steps 1 -by-kind -dtype bf16", shape))
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				check(t, out)
			})
		}
	}
}

func check(t *testing.T, out []byte) {
	var kinds []string
	for _, m := range heavy.FindAllSubmatch(out, -1) {
		kind, impl := string(m[1]), string(m[2])
		if kinds = append(kinds, kind); strings.HasPrefix(impl, "go:") || strings.HasPrefix(impl, "dnnl:") && strings.Contains(impl, "ref") {
			t.Errorf("%s is executed by %s", kind, impl)
		}
	}
	if !slices.Contains(kinds, "matmul dW") || !bytes.Contains(out, []byte("cross_entropy")) {
		t.Errorf("these are not the kinds of a step: %q in\n%s", kinds, out)
	}
}
