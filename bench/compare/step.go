// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
)

// result is one run of one contestant. Items are images or tokens, those of all ranks; RSS is the largest rank's peak.
type result struct {
	rate, best           float64 // items a second: of the median step, of the fastest
	stepMS               float64
	rssMB, pssMB, firstS float64 // 0: not known
	util                 float64 // part of the step in which the device was at work; 0: not known
	disturbed            float64
	version              string
}

// contestant trains for a moment in a given setting.
type contestant struct {
	name    string
	family  string               // contestants of one family are ways to run one peer: what counts is the faster of them, setting by setting; "" = none
	missing string               // why it cannot run, and what to do; "" = it can
	fits    func(s setting) bool // nil: it can do every setting
	run     func(ctx context.Context, s setting) (result, error)
}

type harness struct {
	ctx           context.Context
	o             options
	out, progress io.Writer
	scratch       string
}

// race is a comparison: what is trained, counted in what, by whom.
type race struct {
	title, unit string
	settings    []setting
	field       []contestant
}

// steps measures training steps of ResNet-50.
func (h *harness) steps() error {
	settings, err := h.o.settings(nil, []int{16}, nil)
	if err != nil {
		return err
	}
	field := []contestant{h.gotrain(gotrainCommand, nil)}
	field = append(field, h.pytorch("resnet_torch.py", nil)...)
	field = append(field, h.jax(func(setting) string { return "resnet50" }), h.mark())
	return h.race(race{"ResNet-50 224x224", "img/s", settings, field})
}

// race measures all settings and prints a table.
func (h *harness) race(r race) error {
	var field []contestant
	for _, c := range r.field {
		if c.missing != "" {
			fmt.Fprintf(h.out, "%s does not take part: %s\n", c.name, c.missing)
			continue
		}
		field = append(field, c)
	}
	t := newTable(r.title, r.unit, field)
	for _, s := range r.settings {
		for round := range h.o.rounds {
			for _, c := range field {
				if c.fits != nil && !c.fits(s) {
					continue
				}
				got, err := h.one(c, s)
				if h.ctx.Err() != nil {
					return h.ctx.Err()
				}
				if err != nil {
					fmt.Fprintf(h.out, "%s, %s, round %d failed: %v\n", c.name, s.label(), round+1, err)
					continue
				}
				fmt.Fprintf(
					h.progress,
					"%s, round %d, %s: %s %s, others used %.0f %% of the machine\n",
					s.label(),
					round+1,
					c.name,
					rate(got.rate),
					r.unit,
					got.disturbed,
				)
				t.add(s, c.name, got)
			}
		}
	}
	t.print(h.out, h.o.disturbed)
	return nil
}

func (h *harness) one(c contestant, s setting) (result, error) {
	ctx, cancel := context.WithTimeout(h.ctx, h.o.timeout)
	defer cancel()
	return c.run(ctx, s)
}
