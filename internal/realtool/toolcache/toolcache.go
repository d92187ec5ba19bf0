// Package toolcache knows the pinned tools that tests, checks and benchmarks run: their versions (tools.txt), where their
// binaries are kept, and how they are built from Go modules.
//
// The binaries stay outside of the clone, in a file NAME-VERSION for each, so that a fresh clone on a machine that has
// built them once pays nothing, and two clones that pin different versions do not disturb one another.
package toolcache

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed tools.txt
var table string

// Tool is one pinned program.
type Tool struct {
	// Name is the name of the program.
	Name string
	// Version is the version of the Go module that the program is built from, with its leading v.
	Version string
	// Module is the folder under tools/ of the Go module that pins the program and all that it is built from.
	Module string
	// Package is the import path of the main package.
	Package string
	// LDFlags are the linker flags that tell the program its version; empty for one that needs none.
	LDFlags string
}

// MissingError says that a tool is known but has not been built on this machine.
type MissingError struct {
	Tool Tool
	// Path is the file where the tool was looked for.
	Path string
}

// Error names the tool, the file, and the command that builds it.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s %s is not built (%s is missing); build it with: make tools TOOLS=%s",
		e.Tool.Name, e.Tool.Version, e.Path, e.Tool.Name)
}

// Tools returns every pinned tool in the order of tools.txt.
func Tools() ([]Tool, error) { return parse(table) }

// parse reads lines in the form that tools.txt explains. Errors carry the line.
func parse(text string) ([]Tool, error) {
	var tools []Tool
	seen := make(map[string]bool)
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 4 {
			return nil, fmt.Errorf("tools.txt:%d: %d fields, want name, version, module and package", i+1, len(fields))
		}
		t := Tool{Name: fields[0], Version: fields[1], Module: fields[2], Package: fields[3]}
		number, ok := strings.CutPrefix(t.Version, "v")
		parts := strings.SplitN(number, ".", 3)
		if !ok || len(parts) != 3 {
			return nil, fmt.Errorf("tools.txt:%d: version %q is not of the form v1.2.3", i+1, t.Version)
		}
		if seen[t.Name] {
			return nil, fmt.Errorf("tools.txt:%d: %s is listed twice", i+1, t.Name)
		}
		seen[t.Name] = true
		t.LDFlags = strings.NewReplacer("{version}", t.Version,
			"{major}", parts[0], "{minor}", parts[1], "{patch}", parts[2]).Replace(strings.Join(fields[4:], " "))
		tools = append(tools, t)
	}
	return tools, nil
}

// Find returns the pinned tool of that name.
func Find(name string) (Tool, error) {
	tools, err := Tools()
	if err != nil {
		return Tool{}, err
	}
	for _, t := range tools {
		if t.Name == name {
			return t, nil
		}
	}
	return Tool{}, fmt.Errorf("no tool %q is pinned in tools.txt", name)
}

// Dir returns the folder of the binaries: $DNSMESH_TOOLS, else dnsmesh/tools under $XDG_CACHE_HOME or ~/.cache.
// It need not exist yet.
func Dir() (string, error) {
	if dir := os.Getenv("DNSMESH_TOOLS"); dir != "" {
		return filepath.Abs(dir)
	}
	if cache := os.Getenv("XDG_CACHE_HOME"); cache != "" {
		return filepath.Abs(filepath.Join(cache, "dnsmesh", "tools"))
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the folder of the tools: %w", err)
	}
	return filepath.Join(home, ".cache", "dnsmesh", "tools"), nil
}

// Path returns the file that holds the tool once it is built.
func (t Tool) Path() (string, error) {
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, t.Name+"-"+t.Version), nil
}

// Lookup returns the path of a tool that is built. The error is a *MissingError where it is not.
func Lookup(name string) (string, error) {
	t, err := Find(name)
	if err != nil {
		return "", err
	}
	path, err := t.Path()
	if err != nil {
		return "", err
	}
	built, err := isBuilt(path)
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", name, err)
	}
	if !built {
		return "", &MissingError{Tool: t, Path: path}
	}
	return path, nil
}

// isBuilt reports whether path is a file that can be run. Binaries get there by a rename, so one that exists is whole.
func isBuilt(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("%s is not a regular file", path)
	}
	return true, nil
}
