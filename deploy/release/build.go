package main

import (
	"context"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// maxGlibc is the newest C library that the programs for Linux may need: that of Ubuntu 22.04, Debian 12, RHEL 9 and openEuler 22.03.
const maxGlibc = "2.34"

// target is a platform.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

func parseTargets(list string) (out []target, err error) {
	for _, s := range strings.Split(list, ",") {
		system, arch, ok := strings.Cut(strings.TrimSpace(s), "/")
		if !ok || system != "linux" && system != "darwin" || arch != "amd64" && arch != "arm64" {
			return nil, fmt.Errorf("-targets: %q is not a platform of gotrain: linux or darwin, / amd64 or arm64", s)
		}
		out = append(out, target{system, arch})
	}
	return out, nil
}

// compiler is the C compiler for a target with cgo.
func (t target) compiler() string {
	switch {
	case os.Getenv("CC") != "" || t.arch == runtime.GOARCH:
		return os.Getenv("CC")
	case t.arch == "arm64":
		return "aarch64-linux-gnu-gcc"
	}
	return "x86_64-linux-gnu-gcc"
}

// one builds the archive of one target and returns its name.
func (r *release) one(ctx context.Context, t target, out string) (string, error) {
	dir, err := os.MkdirTemp("", "gotrain-build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	fast := t.os == "linux"
	if err := r.build(ctx, t, fast, dir, "gotrain"); err != nil {
		return "", err
	}
	if err := r.build(ctx, t, false, dir, "hcclrun"); err != nil {
		return "", err
	}
	programs := []string{filepath.Join(dir, "gotrain"), filepath.Join(dir, "hcclrun")}
	if fast {
		if err := checkGlibc(programs[0]); err != nil {
			return "", err
		}
	}
	info, err := buildinfo.ReadFile(programs[0])
	if err != nil {
		return "", err
	}
	if v := info.Main.Version; v == "" || v == "(devel)" {
		return "", fmt.Errorf("the program has no version\nhint: go build could not read the commit; is git in PATH?")
	}
	sbom, err := bill(t, r.time, programs)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("gotrain_%s_%s_%s", info.Main.Version, t.os, t.arch)
	return name + ".tar.gz", r.archive(ctx, filepath.Join(out, name+".tar.gz"), name, programs, sbom)
}

// build builds one program. The options make the result independent of where the source lies and of the user's settings.
func (r *release) build(ctx context.Context, t target, cgo bool, dir, program string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-mod=readonly", "-ldflags=-s -w", "-o", filepath.Join(dir, program),
		"./cmd/"+program)
	cmd.Dir = r.root
	cmd.Env = append(append(os.Environ(), r.env...), "GOFLAGS=", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=",
		"CGO_ENABLED=0", "CGO_CFLAGS=-O2 -g0", "CGO_CXXFLAGS=", "CGO_CPPFLAGS=", "CGO_LDFLAGS=")
	if cgo {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
		if cc := t.compiler(); cc != "" {
			if _, err := exec.LookPath(strings.Fields(cc)[0]); err != nil {
				return fmt.Errorf("%w\nhint: Debian has it in the package gcc-aarch64-linux-gnu (or gcc-x86-64-linux-gnu); or leave the platform out with -targets", err)
			}
			cmd.Env = append(cmd.Env, "CC="+cc)
		}
	}
	_, err := output(cmd)
	return err
}

// checkGlibc returns an error if a program needs a newer C library than releases may.
func checkGlibc(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return err
	}
	defer f.Close()
	needs, err := f.DynamicVersionNeeds()
	if err != nil {
		return err
	}
	for _, lib := range needs {
		for _, v := range lib.Needs {
			if have, ok := strings.CutPrefix(v.Dep, "GLIBC_"); ok && newer(have, maxGlibc) {
				return fmt.Errorf("the program needs %s of %s, and releases must run with %s\nhint: build on Debian 12", v.Dep, lib.Name, maxGlibc)
			}
		}
	}
	return nil
}

// newer compares versions of numbers and dots.
func newer(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range x {
		n, _ := strconv.Atoi(x[i])
		m := 0
		if i < len(y) {
			m, _ = strconv.Atoi(y[i])
		}
		if n != m {
			return n > m
		}
	}
	return false
}
