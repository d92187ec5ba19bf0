package toolcache

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	got, err := parse("# comment\n\nhello v1.2.3 mod example.org/hello -X a={version} -X b={major}.{minor}.{patch}\nplain v0.1.0 mod example.org/plain\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []Tool{
		{Name: "hello", Version: "v1.2.3", Module: "mod", Package: "example.org/hello", LDFlags: "-X a=v1.2.3 -X b=1.2.3"},
		{Name: "plain", Version: "v0.1.0", Module: "mod", Package: "example.org/plain"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parse (-want +got):\n%s", diff)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a v1.2.3 mod":                     "tools.txt:1: 3 fields",
		"\na 1.2.3 mod p":                  `tools.txt:2: version "1.2.3"`,
		"a v1.2 mod p":                     `tools.txt:1: version "v1.2"`,
		"a v1.2.3 mod p\na v1.2.3 mod p\n": "tools.txt:2: a is listed twice",
	} {
		if _, err := parse(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("parse(%q): error %v, want %q…", text, err, want)
		}
	}
}

// TestVersionsAgree compares the table with the modules that pin the tools.
func TestVersionsAgree(t *testing.T) {
	tools, err := Tools()
	if err != nil {
		t.Fatal(err)
	}
	if len(tools) == 0 {
		t.Fatal("tools.txt lists no tool")
	}
	for _, tool := range tools {
		cmd := exec.Command("go", "mod", "edit", "-json")
		cmd.Dir = filepath.Join("..", "..", "..", "tools", tool.Module)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: reading the go.mod of tools/%s: %v", tool.Name, tool.Module, err)
		}
		var mod struct {
			Require []struct{ Path, Version string }
			Tool    []struct{ Path string }
		}
		if err := json.Unmarshal(out, &mod); err != nil {
			t.Fatal(err)
		}
		version := ""
		for _, r := range mod.Require {
			if tool.Package == r.Path || strings.HasPrefix(tool.Package, r.Path+"/") {
				version = r.Version
			}
		}
		if version != tool.Version {
			t.Errorf("%s: tools.txt says %s, tools/%s/go.mod requires %q", tool.Name, tool.Version, tool.Module, version)
		}
		listed := false
		for _, p := range mod.Tool {
			listed = listed || p.Path == tool.Package
		}
		if !listed {
			t.Errorf("%s: %s is no tool of tools/%s/go.mod", tool.Name, tool.Package, tool.Module)
		}
	}
}

func TestDir(t *testing.T) {
	for _, tt := range []struct{ name, tools, cache, home, want string }{
		{"named", "/named", "/cache", "/home", "/named"},
		{"cache", "", "/cache", "/home", "/cache/dnsmesh/tools"},
		{"home", "", "", "/home", "/home/.cache/dnsmesh/tools"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("DNSMESH_TOOLS", tt.tools)
			t.Setenv("XDG_CACHE_HOME", tt.cache)
			t.Setenv("HOME", tt.home)
			got, err := Dir()
			if err != nil || got != tt.want {
				t.Errorf("Dir() = %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DNSMESH_TOOLS", dir)
	tool, err := Find("etcd")
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "etcd-"+tool.Version)

	var missing *MissingError
	if _, err := Lookup("etcd"); !errors.As(err, &missing) || missing.Path != want {
		t.Errorf("Lookup of a tool that is not built: %v, want a MissingError for %s", err, want)
	}
	if _, err := Lookup("unheard-of"); err == nil || errors.As(err, &missing) {
		t.Errorf("Lookup of a tool that is not pinned: %v, want an error that is no MissingError", err)
	}
	if err := os.WriteFile(want, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := Lookup("etcd"); err != nil || got != want {
		t.Errorf("Lookup = %q, %v; want %q", got, err, want)
	}
}

// TestBuildAtOnce has several callers build the same tool, in a folder where an earlier build was killed.
func TestBuildAtOnce(t *testing.T) {
	cache, modules := t.TempDir(), t.TempDir()
	t.Setenv("DNSMESH_TOOLS", cache)
	writeFiles(t, filepath.Join(modules, "hello"), map[string]string{
		"go.mod":  "module example.org/hello\n\ngo 1.24\n",
		"main.go": "package main\n\nvar version string\n\nfunc main() { println(\"hello\", version) }\n",
	})
	tool := Tool{Name: "hello", Version: "v1.2.3", Module: "hello", Package: "example.org/hello", LDFlags: "-X main.version=v1.2.3"}
	writeFiles(t, filepath.Join(cache, "hello-v1.2.3.build"), map[string]string{"hello": "half a binary"})

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var log bytes.Buffer
			if _, err := tool.Build(t.Context(), modules, &log); err != nil {
				t.Errorf("%v\n%s", err, &log)
			}
		})
	}
	wg.Wait()
	path := filepath.Join(cache, "hello-v1.2.3")
	out, err := exec.Command(path).CombinedOutput()
	if err != nil || string(out) != "hello v1.2.3\n" {
		t.Errorf("running the tool: %q, %v", out, err)
	}
	if _, err := os.Stat(path + ".build"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the build left its scratch folder: %v", err)
	}

	// A tool that is there is not built again, not even looked for in its module.
	if got, err := tool.Build(t.Context(), filepath.Join(modules, "gone"), os.Stderr); err != nil || got != path {
		t.Errorf("Build of a tool that is built = %q, %v; want %q", got, err, path)
	}
}

func TestBuildError(t *testing.T) {
	cache, modules := t.TempDir(), t.TempDir()
	t.Setenv("DNSMESH_TOOLS", cache)
	writeFiles(t, filepath.Join(modules, "broken"), map[string]string{
		"go.mod":  "module example.org/broken\n\ngo 1.24\n",
		"main.go": "package main\n\nfunc main() { undefined() }\n",
	})
	tool := Tool{Name: "broken", Version: "v1.0.0", Module: "broken", Package: "example.org/broken"}
	var log bytes.Buffer
	if _, err := tool.Build(t.Context(), modules, &log); err == nil || !strings.Contains(log.String(), "undefined: undefined") {
		t.Errorf("Build = %v with log %q, want the compiler's error", err, &log)
	}
	left, err := filepath.Glob(filepath.Join(cache, "broken*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(cache, "broken-v1.0.0.lock")}, left); diff != "" {
		t.Errorf("files after a build that failed (-want +got):\n%s", diff)
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
