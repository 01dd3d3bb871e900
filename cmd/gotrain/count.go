package main

import (
	"errors"
	"log/slog"
	"os"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/recipes"
)

// counted replaces train.ranks = auto by the number of devices of this machine.
func counted(r *recipes.Recipe, err error) (*recipes.Recipe, error) {
	if err != nil {
		return nil, err
	}
	if err := r.Environ(os.LookupEnv); err != nil {
		return nil, err
	}
	r.CountRanks(countDevices)
	return r, nil
}

// countDevices returns how many devices train.device finds, or 0 if they cannot be counted. It opens none.
func countDevices(device string) int {
	if device == "auto" {
		_, n, err := npu.CountBest()
		if err != nil {
			slog.Warn("devices could not be counted for train.ranks = auto", "reason", err)
		}
		return n
	}
	n, err := npu.Count(device)
	if err != nil && !errors.Is(err, npu.ErrUncounted) {
		slog.Warn("devices could not be counted for train.ranks = auto", "device", device, "reason", err)
	}
	return n
}

// nodeOf returns a function that tells the NUMA node of a rank's device, or nil if no device has one.
func nodeOf(device string) func(rank int) (node int, ok bool) {
	if device == "auto" {
		if device, _, _ = npu.CountBest(); device == "" {
			return nil
		}
	}
	if _, err := npu.Node(device, 0); err != nil {
		return nil
	}
	return func(rank int) (int, bool) {
		node, err := npu.Node(device, rank)
		return node, err == nil && node >= 0
	}
}
