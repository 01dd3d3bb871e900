package settings

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// lines returns what of a line that a setting became.
func (s *Settings) line(what string) (value, by string) {
	for _, l := range s.Lines {
		if l.What == what {
			return l.Value, l.By
		}
	}
	return "", ""
}

func (s *Settings) env(name string) string {
	for _, v := range s.Setenv {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

func TestWordsOfArticles(t *testing.T) {
	for _, c := range []struct {
		env        map[string]string
		what       string
		value      string
		set        string // the variable of that name is set to this
		buffer     uint32
		our        time.Duration
		whoseWords string
	}{
		{env: map[string]string{"HCCL_TOPOLOGY": "mesh"}, what: "HCCL_ALGO", value: "not set", whoseWords: "HCCL_TOPOLOGY=mesh"},
		{env: map[string]string{"HCCL_TOPOLOGY": "tree"}, what: "HCCL_ALGO", value: "level0:NA;level1:H-D_R", set: "level0:NA;level1:H-D_R"},
		{env: map[string]string{"HCCL_TOPOLOGY": "ring"}, what: "HCCL_ALGO", value: "level0:NA;level1:ring", set: "level0:NA;level1:ring"},
		{env: map[string]string{"HCCL_TOPOLOGY": "tree", "HCCL_ALGO": "level0:NA;level1:H-D_R"}, what: "HCCL_ALGO", value: "level0:NA;level1:H-D_R"},
		{env: map[string]string{"HCCL_ALGO": "level0:NA;level1:NHR"}, what: "HCCL_ALGO", value: "level0:NA;level1:NHR"},
		{env: map[string]string{"HCCL_BUFFER_SIZE": "67108864"}, what: "buffer", value: "64 MB", buffer: 64, whoseWords: "bytes"},
		{env: map[string]string{"HCCL_BUFFER_SIZE": "67108865"}, what: "buffer", value: "65 MB", buffer: 65},
		{env: map[string]string{"HCCL_BUFFER_SIZE": "1"}, what: "buffer", value: "1 MB", buffer: 1},
		{env: map[string]string{"HCCL_BUFFER_SIZE": "67108864", "HCCL_BUFFSIZE": "64"}, what: "buffer", value: "64 MB", buffer: 64},
		{env: map[string]string{"HCCL_BUFFSIZE": "300"}, what: "buffer", value: "300 MB", buffer: 300},
		{env: map[string]string{}, what: "buffer", value: "200 MB", whoseWords: "left to HCCL"},
		{env: map[string]string{"HCCL_GRAD_COMPRESS": "none"}, what: "compression", value: "none"},
		{env: map[string]string{"HCCL_GRAD_COMPRESS": "0"}, what: "compression", value: "none"},
		{env: map[string]string{"HCCL_GRAD_COMPRESS": "fp16"}, what: "compression", value: "f16", whoseWords: "HCCL_GRAD_COMPRESS=fp16"},
		{env: map[string]string{"HCCL_GRAD_COMPRESS": "bf16"}, what: "compression", value: "bf16"},
		{env: map[string]string{"HCCL_TIMEOUT": "60"}, what: "HCCL_CONNECT_TIMEOUT", value: "120 s", set: "120", our: time.Minute,
			whoseWords: "moved into 120 to 7200"},
		{env: map[string]string{"HCCL_TIMEOUT": "900"}, what: "HCCL_CONNECT_TIMEOUT", value: "900 s", set: "900", our: 15 * time.Minute},
		{env: map[string]string{"HCCL_TIMEOUT": "10000"}, what: "HCCL_CONNECT_TIMEOUT", value: "7200 s", set: "7200", our: 10000 * time.Second},
		{env: map[string]string{"HCCL_TIMEOUT": "900"}, what: "HCCL_EXEC_TIMEOUT", value: "960 s", set: "960", our: 15 * time.Minute},
		{env: map[string]string{"HCCL_TIMEOUT": "900", "HCCL_EXEC_TIMEOUT": "0"}, what: "HCCL_EXEC_TIMEOUT", value: "0 s", our: 15 * time.Minute},
		{env: map[string]string{}, what: "HCCL_CONNECT_TIMEOUT", value: "600 s", set: "600", whoseWords: "default of gotrain"},
		{env: map[string]string{"HCCL_CONNECT_TIMEOUT": "240"}, what: "HCCL_CONNECT_TIMEOUT", value: "240 s", whoseWords: "environment"},
		{env: map[string]string{"HCCL_IF_BASE_PORT": "50000"}, what: "HCCL_IF_BASE_PORT", value: "50000"},
		{env: map[string]string{}, what: "HCCL_HOST_SOCKET_PORT_RANGE", value: "auto", set: "auto"},
		{env: map[string]string{"HCCL_NPU_SOCKET_PORT_RANGE": "16666"}, what: "HCCL_NPU_SOCKET_PORT_RANGE", value: "16666"},
		{env: map[string]string{"HCCL_RDMA_TC": "132"}, what: "HCCL_RDMA_TC", value: "132", whoseWords: "environment"},
		{env: map[string]string{"HCCL_NEW_THING": "7"}, what: "HCCL_NEW_THING", value: "7", whoseWords: "unknown to gotrain"},
		{env: map[string]string{"HCCL_EVENT_TIMEOUT": "7"}, what: "HCCL_EVENT_TIMEOUT", value: "7", whoseWords: "only torch_npu"},
		{env: map[string]string{"HCCL_DETERMINISTIC": "strict"}, what: "deterministic", value: "strict"},
		{env: map[string]string{"HCCL_DETERMINISTIC": "false"}, what: "deterministic", value: "false"},
	} {
		s, err := Read(Input{Env: c.env, Ranks: 8, SoC: "A2"})
		if err != nil {
			t.Errorf("%v: %v", c.env, err)
			continue
		}
		value, by := s.line(c.what)
		if value != c.value || !strings.Contains(by, c.whoseWords) {
			t.Errorf("%v: %s became %q, %q; want %q, with %q", c.env, c.what, value, by, c.value, c.whoseWords)
		}
		if got := s.env(c.what); got != c.set {
			t.Errorf("%v: %s is set to %q, want %q", c.env, c.what, got, c.set)
		}
		if s.Config.BufferMB != c.buffer || s.Timeout != c.our {
			t.Errorf("%v: buffer %d, timeout %v", c.env, s.Config.BufferMB, s.Timeout)
		}
		for name := range c.env {
			if s.env(name) != "" {
				t.Errorf("%v: %s of the user is overwritten", c.env, name)
			}
		}
	}
}

func TestWrong(t *testing.T) {
	for _, c := range []struct {
		env, options map[string]string
		want         []string // in the problems, in order
	}{
		{env: map[string]string{"HCCL_TOPOLOGY": "star"}, want: []string{"HCCL_TOPOLOGY=star: it is none of mesh"}},
		{env: map[string]string{"HCCL_TOPOLOGY": ""}, want: []string{"HCCL_TOPOLOGY=: it is none of mesh"}},
		{env: map[string]string{"HCCL_TOPOLOGY": "mesh", "HCCL_ALGO": "level0:NA;level1:ring"}, want: []string{"leaves the choice to HCCL, but HCCL_ALGO is"}},
		{env: map[string]string{"HCCL_TOPOLOGY": "tree", "HCCL_ALGO": "level0:NA;level1:ring"}, want: []string{"means HCCL_ALGO=level0:NA;level1:H-D_R, but"}},
		{env: map[string]string{"HCCL_BUFFER_SIZE": "64MB"}, want: []string{"HCCL_BUFFER_SIZE=64MB: it is not a whole number"}},
		{env: map[string]string{"HCCL_BUFFER_SIZE": "0"}, want: []string{"cannot have this size"}},
		{env: map[string]string{"HCCL_BUFFER_SIZE": "18446744073709551615"}, want: []string{"cannot have this size"}},
		{env: map[string]string{"HCCL_BUFFER_SIZE": "18446744073709551616"}, want: []string{"it is too large"}},
		{env: map[string]string{"HCCL_BUFFER_SIZE": "67108864", "HCCL_BUFFSIZE": "200"}, want: []string{"it means 64 MB, but HCCL_BUFFSIZE=200 means 200 MB"}},
		{env: map[string]string{"HCCL_BUFFSIZE": "100"}, options: map[string]string{OptionBuffer: "50"}, want: []string{"it means 100 MB, but hccl_buffer_mb=50"}},
		{env: map[string]string{"HCCL_BUFFSIZE": "0"}, want: []string{"HCCL_BUFFSIZE=0: it is outside 1"}},
		{env: map[string]string{"HCCL_GRAD_COMPRESS": "int8"}, want: []string{"no kernels for 8 bits"}},
		{env: map[string]string{"HCCL_GRAD_COMPRESS": "zip"}, want: []string{"none of none, fp16"}},
		{env: map[string]string{"HCCL_TIMEOUT": "10m"}, want: []string{"HCCL_TIMEOUT=10m: it is not a number of seconds"}},
		{env: map[string]string{"HCCL_TIMEOUT": "0"}, want: []string{"HCCL_TIMEOUT=0"}},
		{env: map[string]string{"HCCL_TIMEOUT": "600", "HCCL_EXEC_TIMEOUT": "60"}, want: []string{"HCCL_EXEC_TIMEOUT=60 ends earlier"}},
		{env: map[string]string{"HCCL_CONNECT_TIMEOUT": "60"}, want: []string{"HCCL_CONNECT_TIMEOUT=60: it is outside 120 to 7200"}},
		{env: map[string]string{"HCCL_EXEC_TIMEOUT": "1.234"}, want: []string{"more than two decimals"}},
		{env: map[string]string{"HCCL_EXEC_TIMEOUT": "1836", "HCCL_OP_EXPANSION_MODE": "AIV"}, want: []string{"at most 1091"}},
		{env: map[string]string{"HCCL_DETERMINISTIC": "1"}, want: []string{"none of false, true, strict\nhint: HCCL reads words here"}},
		{env: map[string]string{"HCCL_DETERMINISTIC": "false"}, options: map[string]string{"deterministic": "true"},
			want: []string{"the recipe says deterministic = true"}},
		{options: map[string]string{"deterministic": "maybe"}, want: []string{"neither true nor false"}},
		{env: map[string]string{"HCCL_OP_EXPANSION_MODE": "aicpu"}, want: []string{"none of HOST"}},
		{env: map[string]string{"HCCL_IF_IP": "eth0"}, want: []string{"not an IP address"}},
		{env: map[string]string{"HCCL_SOCKET_IFNAME": "eth0,,eth1"}, want: []string{"not the name of a network interface"}},
		{env: map[string]string{"HCCL_SOCKET_FAMILY": "ipv4"}, want: []string{"none of AF_INET"}},
		{env: map[string]string{"HCCL_IF_BASE_PORT": "80"}, want: []string{"outside 1024 to 65520"}},
		{env: map[string]string{"HCCL_IF_BASE_PORT": "50000", "HCCL_HOST_SOCKET_PORT_RANGE": "auto"}, want: []string{"HCCL would ignore this one"}},
		{env: map[string]string{"HCCL_HOST_SOCKET_PORT_RANGE": "60010-60000"}, want: []string{"ends before it begins"}},
		{env: map[string]string{"HCCL_NPU_SOCKET_PORT_RANGE": "70000"}, want: []string{"not a port"}},
		{env: map[string]string{"HCCL_INTRA_ROCE_ENABLE": "1", "HCCL_INTRA_PCIE_ENABLE": "1"}, want: []string{"only one of them"}},
		{env: map[string]string{"HCCL_WHITELIST_DISABLE": "0"}, want: []string{"HCCL_WHITELIST_FILE does not say"}},
		{env: map[string]string{"HCCL_RDMA_TC": "130"}, want: []string{"not a multiple of 4"}},
		{env: map[string]string{"HCCL_RDMA_SL": "8"}, want: []string{"outside 0 to 7"}},
		{env: map[string]string{"HCCL_RDMA_TIMEOUT": "4"}, want: []string{"outside 5 to 20"}},
		{env: map[string]string{"HCCL_RDMA_RETRY_CNT": "0"}, want: []string{"outside 1 to 7"}},
		{env: map[string]string{"HCCL_OP_RETRY_ENABLE": "L1:0,L1:1"}, want: []string{"is not L1:0"}},
		{env: map[string]string{"HCCL_ALGO": "ring"}, want: []string{`"ring" is not level0`}},
		{env: map[string]string{"HCCL_ALGO": "level0:ring"}, want: []string{`level0 has no algorithm "ring" (NA)`}},
		{env: map[string]string{"HCCL_ALGO": "level0:NA;level1:tree"}, want: []string{`level1 has no algorithm "tree"`}},
		{env: map[string]string{"HCCL_ALGO": "level1:ring;level0:NA"}, want: []string{"after a higher level"}},
		{env: map[string]string{"HCCL_ALGO": "allreduce=level0:NA/gather=level0:NA"}, want: []string{`no collective "gather"`}},
		{options: map[string]string{"hccl_bufer_mb": "9"}, want: []string{"there is no such option"}},
		{options: map[string]string{OptionExpansion: "fpga"}, want: []string{"none of host, ai_cpu, aiv"}},
		{options: map[string]string{OptionExpansion: "aiv"}, env: map[string]string{"HCCL_OP_EXPANSION_MODE": "HOST"},
			want: []string{"HCCL_OP_EXPANSION_MODE is HOST"}},
		{options: map[string]string{OptionCheck: "always"}, want: []string{"none of before, behind"}},
		// all of them at once
		{env: map[string]string{"HCCL_TOPOLOGY": "star", "HCCL_GRAD_COMPRESS": "int8", "HCCL_RDMA_SL": "9", "HCCL_TIMEOUT": "soon"},
			want: []string{"HCCL_RDMA_SL=9", "HCCL_TOPOLOGY=star", "HCCL_GRAD_COMPRESS=int8", "HCCL_TIMEOUT=soon"}},
	} {
		_, err := Read(Input{Env: c.env, Options: c.options, Ranks: 8, SoC: "A2"})
		if err == nil {
			t.Errorf("%v %v: no error", c.env, c.options)
			continue
		}
		text := err.Error()
		if n := strings.Count(text, "hccl: "); n != len(c.want) {
			t.Errorf("%v %v: %d problems, want %d:\n%s", c.env, c.options, n, len(c.want), text)
		}
		for _, w := range c.want {
			_, rest, ok := strings.Cut(text, w)
			if !ok {
				t.Errorf("%v %v: %q is not in\n%s", c.env, c.options, w, err)
				break
			}
			text = rest
		}
		code := 78
		if strings.HasPrefix(err.Error(), "hccl: HCCL_") {
			code = 64
		}
		if p := (*Problem)(nil); !errors.As(err, &p) || p.Subject == "" || p.ExitCode() != code {
			t.Errorf("%v: %+v, want exit code %d", err, p, code)
		}
	}
}

// HCCL's timeout is longer than gotrain's longest wait, where that is known and the user did not set it.
func TestLongWork(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		long time.Duration
		want string
	}{
		{nil, 0, ""},
		{nil, 20 * time.Minute, ""}, // HCCL's default is longer
		{nil, time.Hour, "3660"},
		{map[string]string{"HCCL_EXEC_TIMEOUT": "7000"}, time.Hour, ""},
		{map[string]string{"HCCL_OP_EXPANSION_MODE": "AIV"}, time.Hour, ""},
		{map[string]string{"HCCL_TIMEOUT": "100"}, time.Hour, "160"},
	} {
		s, err := Read(Input{Env: c.env, Ranks: 2, LongWork: c.long})
		if err != nil || s.env("HCCL_EXEC_TIMEOUT") != c.want {
			t.Errorf("%v, %v: %v, %v; want %q", c.env, c.long, s, err, c.want)
		}
	}
}

func TestBySoC(t *testing.T) {
	env := map[string]string{"HCCL_OP_EXPANSION_MODE": "HOST"}
	if _, err := Read(Input{Env: env, Ranks: 2, SoC: "A3"}); err == nil || !strings.Contains(err.Error(), "A3 devices have AI_CPU, AIV") {
		t.Error(err)
	}
	for _, soc := range []string{"A2", ""} {
		if _, err := Read(Input{Env: env, Ranks: 2, SoC: soc}); err != nil {
			t.Error(soc, err)
		}
	}
	if _, err := Read(Input{Env: map[string]string{"HCCL_DETERMINISTIC": "strict"}, Ranks: 2}); err == nil || !strings.Contains(err.Error(), "at least 3 ranks") {
		t.Error(err)
	}
}

// The offsets were compared with CANN's headers.
func TestConfigBytes(t *testing.T) {
	on := true
	c := Config{BufferMB: 64, Deterministic: &on, Name: strings.Repeat("n", 200), Expansion: ExpansionAICPU}
	b := c.Bytes()
	le := binary.LittleEndian
	if len(b) != 300 || le.Uint64(b) != 300 || le.Uint32(b[8:]) != 0xF0F0F0F0 || le.Uint32(b[12:]) != 5 || le.Uint64(b[16:]) != 0 {
		t.Errorf("head % x of %d bytes", b[:24], len(b))
	}
	if le.Uint32(b[24:]) != 64 || le.Uint32(b[28:]) != 1 || le.Uint32(b[288:]) != 2 || le.Uint32(b[292:]) != 0xFFFFFFFF || le.Uint32(b[296:]) != 0xFFFFFFFF {
		t.Errorf("fields % x … % x", b[24:32], b[288:])
	}
	if name := string(b[32:160]); name != strings.Repeat("n", 127)+"\x00" {
		t.Errorf("name %q", name)
	}
	if udi := b[160:288]; slices.ContainsFunc(udi, func(c byte) bool { return c != 0 }) {
		t.Errorf("udi % x", udi)
	}
	b = (&Config{}).Bytes()
	if le.Uint32(b[24:]) != 0xFFFFFFFF || le.Uint32(b[28:]) != 0xFFFFFFFF || le.Uint32(b[288:]) != 0 {
		t.Errorf("unset fields % x … % x", b[24:32], b[288:])
	}
	off := false
	if b = (&Config{Deterministic: &off}).Bytes(); le.Uint32(b[28:]) != 0 {
		t.Errorf("deterministic off is % x", b[28:32])
	}
}

// Whatever the environment holds, Read gives settings or problems; the settings have a value for each line, and read back they are the same.
func FuzzRead(f *testing.F) {
	names := []string{}
	for _, v := range variables {
		names = append(names, v.name)
	}
	names = append(append(names, articles...), "HCCL_OTHER")
	f.Add(uint8(0), "64", uint8(1), "level0:NA;level1:ring", "host", "true")
	f.Add(uint8(29), "67108864", uint8(30), "tree", "", "false")
	f.Add(uint8(9), "^=eth0,eth1", uint8(10), "60000-60050,61000", "aiv", "x")
	f.Fuzz(func(t *testing.T, n1 uint8, v1 string, n2 uint8, v2 string, expansion, deterministic string) {
		in := Input{Env: map[string]string{names[int(n1)%len(names)]: v1, names[int(n2)%len(names)]: v2},
			Options: map[string]string{OptionExpansion: expansion, OptionDeterministic: deterministic}, Ranks: 4, LongWork: time.Hour}
		s, err := Read(in)
		if err != nil {
			return
		}
		if len(s.Config.Bytes()) != configSize || s.Timeout < 0 {
			t.Fatalf("%v: %+v", in, s)
		}
		for _, v := range s.Setenv {
			if k, ok := find(v.Name); !ok || k.check != nil && k.check(v.Value) != nil {
				t.Fatalf("%v: %s would be set to %q, which HCCL refuses", in, v.Name, v.Value)
			}
			if _, set := in.Env[v.Name]; set {
				t.Fatalf("%v: %s is overwritten", in, v.Name)
			}
			in.Env[v.Name] = v.Value // what HCCL sees now
		}
		again, err := Read(in)
		if err != nil {
			t.Fatalf("%v: settings contradict themselves: %v", in, err)
		}
		if again.Config.BufferMB != s.Config.BufferMB || again.Timeout != s.Timeout || len(again.Setenv) != 0 {
			t.Fatalf("%v: %+v, then %+v", in, s, again)
		}
	})
}
