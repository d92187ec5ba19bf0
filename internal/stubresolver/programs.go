//go:build linux

package stubresolver

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Program is a compiled probe of one resolver.
type Program struct {
	// Library is glibc, musl or Go, Version its version, such as 2.36.
	Library, Version string
	// NoTCP tells that the probe sends no valid query over TCP, although the resolver would: in the translation of musl
	// the length in front of the query is overwritten (X__res_msend_rc in modernc.org/libc v1.81.2).
	NoTCP bool
	// command is the probe without its first argument, args what follows that.
	command string
	args    []string
}

// Build compiles the probes into dir. source is the directory of this package. The resolvers are the C library of the
// machine, the musl of musl-gcc, musl 1.2.5 (the library translated to Go in modernc.org/libc, because distributions
// that have musl-gcc and glibc are often older) and Go.
func Build(source, dir string) ([]Program, error) {
	glibc, musl := filepath.Join(dir, "glibc"), filepath.Join(dir, "musl")
	newMusl, golang := filepath.Join(dir, "newmusl"), filepath.Join(dir, "go")
	c := filepath.Join(source, "testdata", "probe.c")
	flags := slices.Clip([]string{"-O2", "-Wall", "-Wextra", "-Werror", c, "-o"})
	for _, cmd := range []*exec.Cmd{
		exec.Command("cc", append(flags, glibc)...),
		exec.Command("musl-gcc", append(flags, musl)...),
		goBuild(filepath.Join(source, "testdata", "musl"), newMusl),
		goBuild(filepath.Join(source, "goprobe"), golang),
	} {
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compiling a probe: %s: %w\n%s", cmd, err, out)
		}
	}
	glibcVersion, err := exec.Command(glibc, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("asking for the version of glibc: %w", err)
	}
	muslVersion, err := versionOfMusl(musl)
	if err != nil {
		return nil, err
	}
	return []Program{
		{Library: "glibc", Version: strings.TrimSpace(string(glibcVersion)), command: glibc},
		{Library: "musl", Version: muslVersion, command: musl},
		{Library: "musl", Version: "1.2.5", NoTCP: true, command: glibc, args: []string{newMusl}},
		{Library: "Go", Version: strings.TrimPrefix(runtime.Version(), "go"), command: glibc, args: []string{golang}},
	}, nil
}

// Compiled returns probes that were compiled elsewhere, such as testdata/probe.c on an Alpine, linked statically. text
// names them as LIBRARY=VERSION=PATH, with blanks between.
func Compiled(text string) ([]Program, error) {
	var list []Program
	for word := range strings.FieldsSeq(text) {
		part := strings.SplitN(word, "=", 3)
		if len(part) != 3 || part[0] != "glibc" && part[0] != "musl" {
			return nil, fmt.Errorf("reading the list of probes: %q is not glibc=VERSION=PATH or musl=VERSION=PATH", word)
		}
		list = append(list, Program{Library: part[0], Version: part[1], command: part[2]})
	}
	return list, nil
}

func goBuild(dir, out string) *exec.Cmd {
	cmd := exec.Command("go", "build", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	return cmd
}

// versionOfMusl runs the dynamic linker that the program names, which is musl itself and tells its version when it has
// nothing to run.
func versionOfMusl(program string) (string, error) {
	file, err := elf.Open(program)
	if err != nil {
		return "", fmt.Errorf("looking for musl: %w", err)
	}
	defer file.Close()
	for _, part := range file.Progs {
		if part.Type != elf.PT_INTERP {
			continue
		}
		path, err := io.ReadAll(io.LimitReader(part.Open(), 4096))
		if err != nil {
			return "", fmt.Errorf("looking for musl: %w", err)
		}
		// It ends with status 1 after its usage.
		out, err := exec.Command(strings.TrimRight(string(path), "\x00")).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if version, ok := strings.CutPrefix(line, "Version "); ok {
				return strings.TrimSpace(version), nil
			}
		}
		return "", fmt.Errorf("asking musl for its version: %w: %s", err, out)
	}
	return "", fmt.Errorf("looking for musl: %s has no dynamic linker", program)
}
