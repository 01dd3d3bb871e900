package main

import (
	"context"
	"time"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// inspection is what inspect shows about a checkpoint.
type inspection struct {
	Path   string           `json:"path"`
	State  checkpoint.State `json:"state"`
	Files  []inspectedFile  `json:"files"`
	Others []inspectedInfo  `json:"checkpoints,omitempty"` // of the folder, newest first
	Llama  *llama.Config    `json:"llama,omitempty"`
}

type inspectedFile struct {
	Name     string               `json:"name"`
	Bytes    int64                `json:"bytes"`
	SHA256   string               `json:"sha256"`
	Elements int64                `json:"elements,omitempty"`
	Tensors  []safetensors.Tensor `json:"tensors,omitempty"`
}

type inspectedInfo struct {
	Name  string    `json:"name"`
	Step  int64     `json:"step"`
	Time  time.Time `json:"time"`
	Bytes int64     `json:"bytes"`
	Best  bool      `json:"best,omitempty"` // by eval.monitor, where checkpoint.keep_best is on
	Error string    `json:"error,omitempty"`
}

func inspect(ctx context.Context, path string) (*inspection, error) {
	c, err := load(ctx, path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	in := &inspection{Path: c.Path, State: c.State, Llama: llamaOf(c)}
	for _, e := range c.Manifest.Files {
		f := inspectedFile{Name: e.Name, Bytes: e.Size, SHA256: e.SHA256}
		if t := c.File(e.Name); t != nil {
			f.Tensors = t.Tensors()
			for _, x := range f.Tensors {
				n := int64(1)
				for _, d := range x.Shape {
					n *= int64(d)
				}
				f.Elements += n
			}
		}
		in.Files = append(in.Files, f)
	}
	at, single := checkpoint.Resolve(path)
	if single {
		return in, nil
	}
	store := checkpoint.New(checkpoint.OS{}, at, 0)
	infos, err := store.List(ctx)
	best, _ := store.Best() // a damaged pointer names none
	for _, i := range infos {
		o := inspectedInfo{Name: i.Name, Step: i.Step, Time: i.Time, Bytes: i.Bytes, Best: i.Name == best}
		if i.Err != nil {
			o.Error = i.Err.Error()
		}
		in.Others = append(in.Others, o)
	}
	return in, err
}
