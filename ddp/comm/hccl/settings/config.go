package settings

import "encoding/binary"

// Config is the configuration of a communicator, HcclCommConfig. The zero value of a field leaves it to HCCL.
type Config struct {
	BufferMB      uint32 // of device memory for each of two buffers
	Deterministic *bool
	Name          string // in HCCL's log; at most 127 bytes
	Expansion     Expansion
}

// Expansion is where collectives are turned into tasks of the device.
type Expansion uint32

// The places.
const (
	ExpansionDefault Expansion = iota
	ExpansionHost
	ExpansionAICPU
	ExpansionAIV
)

var expansions = map[string]Expansion{"": ExpansionDefault, "default": ExpansionDefault, "host": ExpansionHost, "ai_cpu": ExpansionAICPU, "aiv": ExpansionAIV}

// The layout of HcclCommConfig, version 5: the vendor's initialiser is an inline function, so there is no symbol to call. CANN 8.1 has this version.
// Newer ones append fields, in several sizes under one version number, and accept the older structure. What those fields would set (algorithm,
// execution timeout) has a variable that all releases read, so the older structure is always sent.
const (
	magic   = 0xF0F0F0F0
	version = 5
	unset   = 0xFFFFFFFF

	offSize      = 0
	offMagic     = 8
	offVersion   = 12
	offBuffer    = 24
	offDetermin  = 28
	offName      = 32
	nameSize     = 128
	offExpansion = 288
	offTraffic   = 292
	offService   = 296
	configSize   = 300
)

// Bytes is the structure.
func (c *Config) Bytes() []byte {
	b := make([]byte, (configSize+7)&^7)[:configSize] // it is read as aligned words
	le := binary.LittleEndian
	le.PutUint64(b[offSize:], configSize)
	le.PutUint32(b[offMagic:], magic)
	le.PutUint32(b[offVersion:], version)
	le.PutUint32(b[offBuffer:], unset)
	if c.BufferMB != 0 {
		le.PutUint32(b[offBuffer:], c.BufferMB)
	}
	le.PutUint32(b[offDetermin:], unset)
	if c.Deterministic != nil {
		le.PutUint32(b[offDetermin:], 0)
		if *c.Deterministic {
			le.PutUint32(b[offDetermin:], 1)
		}
	}
	copy(b[offName:offName+nameSize-1], c.Name)
	le.PutUint32(b[offExpansion:], uint32(c.Expansion))
	le.PutUint32(b[offTraffic:], unset)
	le.PutUint32(b[offService:], unset)
	return b
}
