package toolcache

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Build makes sure that the tool is in the folder of binaries and returns its path. It builds only what is missing, from
// the module modules/t.Module, whose go.sum pins every source file. What the go command prints goes to log.
//
// Any number of processes may call it at once: one builds, the others wait for it and then find the binary. The binary
// appears by a rename, so a build that is killed leaves nothing that could be taken for a tool.
func (t Tool) Build(ctx context.Context, modules string, log io.Writer) (string, error) {
	path, err := t.Path()
	if err != nil {
		return "", err
	}
	if built, err := isBuilt(path); built || err != nil {
		return path, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("making the folder of the tools: %w", err)
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return "", fmt.Errorf("waiting for another build of %s: %w", t.Name, err)
	}
	defer unlock()
	if built, err := isBuilt(path); built || err != nil {
		return path, err
	}

	// The lock makes the name ours alone; what a killed build left is removed first.
	scratch := path + ".build"
	if err := os.RemoveAll(scratch); err != nil {
		return "", fmt.Errorf("removing what an earlier build left: %w", err)
	}
	defer os.RemoveAll(scratch)
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return "", fmt.Errorf("making a folder for the build: %w", err)
	}
	binary := filepath.Join(scratch, t.Name)
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false",
		"-ldflags", strings.TrimSpace("-s -w "+t.LDFlags), "-o", binary, t.Package)
	cmd.Dir = filepath.Join(modules, t.Module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building %s %s: %w", t.Name, t.Version, err)
	}
	if err := os.Rename(binary, path); err != nil {
		return "", fmt.Errorf("putting %s in place: %w", t.Name, err)
	}
	return path, nil
}
