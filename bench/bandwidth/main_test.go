// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

func TestRun(t *testing.T) {
	dev, err := npu.Open("cpu", npu.Options{Threads: 1, Extra: map[string]string{"onednn": "off"}})
	if err != nil {
		t.Skip(err)
	}
	dev.Close()
	for _, loop := range []string{"read", "copy", "add"} {
		var out bytes.Buffer
		if err := run([]string{"-bytes", "100000", "-threads", "2", "-seconds", "0.001", "-loop", loop}, &out); err != nil {
			t.Fatal(err)
		}
		var r result
		if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Peer != loop || r.Bytes != 100000 || r.Threads != 2 || r.GBs <= 0 {
			t.Errorf("%v: %s", err, &out)
		}
	}
	for _, bad := range [][]string{{"-bytes", "1"}, {"-threads", "0"}, {"-seconds", "0"}, {"-loop", "write"}} {
		if err := run(bad, &bytes.Buffer{}); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}
