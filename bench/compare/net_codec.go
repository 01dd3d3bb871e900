// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
)

// encoded are the words of gotrain bench --compress, without compression first.
var encoded = []string{"none", "f16", "bf16", "int8"}

// codecMax is the largest size with codecs, in bytes of float32: that of a bucket.
const codecMax = 16 << 20

// raceCodecs compares all-reduces of gradients in float32 and with each codec, and the mark's with 8 bits.
func (t *tcp) raceCodecs(n network, world int) error {
	var field []tcpReducer
	add := func(name string, r tcpReducer) {
		if r.missing == "" {
			r.name = name
			field = append(field, r)
		}
	}
	for _, word := range encoded {
		add(word, t.gotrain("--min", strconv.Itoa(256<<10), "--max", strconv.Itoa(min(codecMax, t.maxBytes(n))), "--factor", "4", "--compress", word))
	}
	add("mark", t.mark("auto"))
	add("mark int8", t.mark("int8"))
	if len(field) == 0 {
		return errors.New("neither gotrain nor a mark can run")
	}
	best, err := t.inTurn(n, world, field)
	if err == nil {
		printCodecs(t.out, n, world, t.o.rounds, best)
	}
	return err
}

// printCodecs shows times, and how many times faster than float32 each codec is; the same of the mark.
func printCodecs(out io.Writer, n network, world, rounds int, best map[string]map[int]float64) {
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "gradients over %s, %d ranks\tf32 µs\t", n.name, world)
	for _, word := range encoded[1:] {
		fmt.Fprintf(w, "%s µs\tfaster\t", word)
	}
	fmt.Fprintln(w, "mark int8 µs\tfaster\tint8 / mark\t")
	over := func(a, b float64) string {
		if b == 0 {
			return "-"
		}
		return known(a/b, "%.2f")
	}
	for _, size := range slices.Sorted(maps.Keys(best["none"])) {
		f32 := best["none"][size]
		fmt.Fprintf(w, "%s\t%.0f\t", bytesName(size), f32)
		for _, word := range encoded[1:] {
			us := best[word][size]
			fmt.Fprintf(w, "%s\t%s\t", known(us, "%.0f"), over(f32, us))
		}
		m := best["mark int8"][size]
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", known(m, "%.0f"), over(best["mark"][size], m), over(best["int8"][size], m))
	}
	w.Flush()
	fmt.Fprintf(out, "best of %d rounds in turn; faster = time of float32 divided by that with the codec; int8 / mark = time divided by the mark's, "+
		"below 1 is faster\n", rounds)
}
