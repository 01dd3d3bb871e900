package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// System is what the checks see of a machine.
type System interface {
	// FS is the file system from its root.
	FS() fs.FS
	// Access returns an error if this process may not read and write a file.
	Access(name string) error
	Env() map[string]string
	// Command returns what a command prints. The error wraps fs.ErrNotExist if there is no such command.
	Command(ctx context.Context, name string, args ...string) (string, error)
	// Probe looks at something in a process of its own.
	Probe(ctx context.Context, r Request) (*Probe, error)
}

// The stages of probing. Each is a process, so what hangs or crashes takes nothing else along.
const (
	StageHost      = "host"      // page size, device cpu
	StageLibraries = "libraries" // loads libraries and looks up symbols
	StageDCMI      = "dcmi"      // asks the driver's library for management
	StageDevices   = "devices"   // opens each NPU
)

// Request is what to probe.
type Request struct {
	Stage     string    `json:"stage"`
	Libraries []Library `json:"libraries,omitempty"`
	DCMI      string    `json:"dcmi,omitempty"` // path of libdcmi
}

// Library is a library to load, and the symbols to look up.
type Library struct {
	File    string   `json:"file"`
	Symbols []string `json:"symbols,omitempty"`
}

// Probe is the answer.
type Probe struct {
	PageSize  int      `json:"page_size,omitempty"`
	Arch      string   `json:"arch,omitempty"`
	CPU       string   `json:"cpu,omitempty"` // detail of the device cpu
	CPUError  string   `json:"cpu_error,omitempty"`
	Libraries []Loaded `json:"libraries,omitempty"`
	Cards     []Card   `json:"cards,omitempty"`
	Devices   []Device `json:"devices,omitempty"`
	Error     string   `json:"error,omitempty"` // of the stage as a whole
}

// Loaded is what became of a library.
type Loaded struct {
	File    string   `json:"file"`
	Error   string   `json:"error,omitempty"`
	Missing []string `json:"missing,omitempty"`
}

// Card is what DCMI says about a chip; negative numbers are not known.
type Card struct {
	Card        int     `json:"card"`
	Chip        int     `json:"chip"`
	Physical    int     `json:"physical"`
	Health      int     `json:"health"`
	Temperature int     `json:"temperature"`
	Power       float64 `json:"power"`
	Load        int     `json:"load"`
	MemoryMB    int64   `json:"memory_mb"`
	UsedMB      int64   `json:"used_mb"`
}

// Device is an NPU that was opened, or not.
type Device struct {
	Index  int      `json:"index"`
	Detail string   `json:"detail,omitempty"`
	SoC    string   `json:"soc,omitempty"`
	Types  []string `json:"types,omitempty"`
	Error  string   `json:"error,omitempty"`
}

// Recorded is a machine that was recorded as files; the package's documentation says which.
type Recorded struct{ Root fs.FS }

// FS is the record.
func (r Recorded) FS() fs.FS { return r.Root }

// Access says what permissions of files told: a record cannot know who asks, so files are accessible unless nobody may read them.
func (r Recorded) Access(name string) error {
	st, err := fs.Stat(r.Root, strings.TrimPrefix(name, "/"))
	if err != nil {
		return err
	}
	if st.Mode().Perm()&0o444 == 0 {
		return fs.ErrPermission
	}
	return nil
}

// Env reads cmd/env.txt.
func (r Recorded) Env() map[string]string {
	text, err := fs.ReadFile(r.Root, "cmd/env.txt")
	m := map[string]string{}
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "="); ok {
			m[k] = v
		}
	}
	return m
}

// Command reads cmd/NAME_ARGUMENTS.txt.
func (r Recorded) Command(_ context.Context, name string, args ...string) (string, error) {
	file := strings.Join(append([]string{path.Base(name)}, args...), "_")
	text, err := fs.ReadFile(r.Root, "cmd/"+strings.ReplaceAll(file, "/", "_")+".txt")
	return string(text), err
}

// Probe reads cmd/probe_STAGE.txt.
func (r Recorded) Probe(_ context.Context, q Request) (*Probe, error) {
	text, err := fs.ReadFile(r.Root, "cmd/probe_"+q.Stage+".txt")
	if err != nil {
		return nil, err
	}
	p := &Probe{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("cmd/probe_%s.txt: %w", q.Stage, err)
	}
	return p, nil
}
