package layers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

const module = "github.com/dnsmesh/kubectl-dnsmesh"

// rule is the place of one package in the layers.
type rule struct {
	// layer is 0 (the lowest) to 4. A package may import those of lower layers, and of its own layer those in siblings.
	layer    int
	siblings []string
	// impure exempts a package of layers 0 to 2 from purity.
	impure bool
	// external lists the modules beyond the standard library that a package of layers 0 and 1 may import, as prefixes of
	// import paths.
	external []string
}

// rules is the table of layers. A new package has to be given its place here; that is a decision about the architecture.
func rules() map[string]rule {
	kubernetesTypes := []string{"k8s.io/api", "k8s.io/apimachinery"}
	return map[string]rule{
		"pkg/corefile": {layer: 0},
		"pkg/finding":  {layer: 0, siblings: []string{"pkg/corefile"}},

		"pkg/cluster":       {layer: 1, siblings: []string{"pkg/resolve", "pkg/reference"}, external: kubernetesTypes},
		"pkg/resolve":       {layer: 1},
		"pkg/reference":     {layer: 1, external: append(slices.Clone(kubernetesTypes), "golang.org/x/net/publicsuffix")},
		"pkg/migrate/named": {layer: 1},
		"pkg/migrate/zone":  {layer: 1, external: []string{"github.com/miekg/dns"}},

		"pkg/rehearse":        {layer: 2, impure: true},
		"pkg/render":          {layer: 2, siblings: []string{"pkg/rehearse"}},
		"pkg/diagnose":        {layer: 2, siblings: []string{"pkg/rehearse", "pkg/render"}},
		"pkg/diagnose/checks": {layer: 2, siblings: []string{"pkg/diagnose", "pkg/rehearse", "pkg/render"}},
		"pkg/diagnose/encode": {layer: 2, siblings: []string{"pkg/diagnose"}},
		"pkg/migrate":         {layer: 2, siblings: []string{"pkg/rehearse", "pkg/render"}},
		"pkg/probe":           {layer: 2, siblings: []string{"pkg/rehearse", "pkg/render"}},
		"pkg/trace":           {layer: 2, siblings: []string{"pkg/rehearse"}},

		"pkg/cluster/load":  {layer: 3},
		"pkg/cluster/apply": {layer: 3},
		"pkg/probe/podexec": {layer: 3},

		"cmd/kubectl-dnsmesh": {layer: 4},
	}
}

// pure is the highest layer that has no files, network, environment, clock, randomness, logging and goroutines.
const pure = 2

// impureImports are the packages of the standard library through which the outside gets in; a final / takes in all below.
func impureImports() []string {
	return []string{
		"crypto/rand", "io/ioutil", "log", "log/", "math/rand", "math/rand/", "net", "net/", "os", "os/", "path/filepath",
		"plugin", "syscall", "testing", "unsafe",
	}
}

// harmless are the exceptions from impureImports.
func harmless() []string { return []string{"net/netip", "net/url"} }

// shellOnly are the modules that belong to layers 3 and 4: clients of a cluster, the command line, the terminal.
func shellOnly() []string {
	return []string{
		"k8s.io/client-go", "k8s.io/cli-runtime", "k8s.io/kubectl", "k8s.io/klog", "github.com/spf13/cobra",
		"github.com/spf13/pflag", "github.com/olekukonko/tablewriter", "github.com/fatih/color", "github.com/mattn/go-isatty",
	}
}

// banned are package names that say nothing about what a package holds.
func banned() []string {
	return []string{"api", "base", "common", "helper", "helpers", "misc", "shared", "types", "util", "utils"}
}

// pkg is what `go list -json` says about a package.
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

func TestLayers(t *testing.T) {
	for _, v := range violations(list(t), rules()) {
		t.Error(v)
	}
}

func TestPureSources(t *testing.T) {
	table := rules()
	for _, p := range list(t) {
		r, known := table[rel(p.ImportPath)]
		if !known {
			continue // TestLayers reports it, or it holds helpers for tests
		}
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Errorf("reading sources: %v", err)
				continue
			}
			for _, v := range sourceViolations(file, r.layer <= pure && !r.impure) {
				at := fset.Position(v.pos)
				t.Errorf("%s/%s:%d: %s", rel(p.ImportPath), name, at.Line, v.text)
			}
		}
	}
}

// violations compares imports with the table.
func violations(pkgs []pkg, table map[string]rule) []string {
	var out []string
	for _, p := range pkgs {
		from := rel(p.ImportPath)
		for _, part := range strings.Split(from, "/") {
			if slices.Contains(banned(), part) {
				out = append(out, fmt.Sprintf("%s: %q says nothing about what the package holds", from, part))
			}
		}
		if strings.HasPrefix(from, "internal/") {
			continue // helpers for tests: they may import everything
		}
		r, known := table[from]
		if !known {
			out = append(out, fmt.Sprintf("%s has no layer: give it one in the table of this test", from))
			continue
		}
		for _, path := range p.Imports {
			if problem := judge(r, path, table); problem != "" {
				out = append(out, fmt.Sprintf("%s (layer %d) imports %s: %s", from, r.layer, path, problem))
			}
		}
	}
	return out
}

// judge says why a package may not import path; empty if it may.
func judge(r rule, path string, table map[string]rule) string {
	switch {
	case path == module || strings.HasPrefix(path, module+"/"):
		to := rel(path)
		target, known := table[to]
		switch {
		case strings.HasPrefix(to, "internal/"):
			return "internal packages are helpers for tests"
		case !known:
			return "" // reported for the package itself
		case target.layer > r.layer:
			return fmt.Sprintf("it is of layer %d, above", target.layer)
		case target.layer == r.layer && !slices.Contains(r.siblings, to):
			return "it is of the same layer"
		}
	case isStandard(path):
		if r.layer <= pure && !r.impure && matches(path, impureImports()) && !slices.Contains(harmless(), path) {
			return "layers 0 to 2 have no files, network, environment, clock, randomness and logging"
		}
	case r.layer <= 1:
		if !under(path, r.external) {
			return "layers 0 and 1 import the standard library and the modules listed for them only"
		}
	case r.layer <= pure:
		if under(path, shellOnly()) {
			return "clients, command line and terminal belong to layers 3 and 4"
		}
	}
	return ""
}

// violation is a place in a source file.
type violation struct {
	pos  token.Pos
	text string
}

// sourceViolations finds what no import shows: func init everywhere, and in pure packages the clock and goroutines.
func sourceViolations(file *ast.File, pureLayer bool) []violation {
	var out []violation
	timeName := ""
	for _, i := range file.Imports {
		if path, err := strconv.Unquote(i.Path.Value); err == nil && path == "time" {
			timeName = "time"
			if i.Name != nil {
				timeName = i.Name.Name
			}
		}
	}
	clock := []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until", "Local"}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				out = append(out, violation{n.Pos(), "func init: build values where they are needed"})
			}
		case *ast.GoStmt:
			if pureLayer {
				out = append(out, violation{n.Pos(), "go statement: layers 0 to 2 have no goroutines"})
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if pureLayer && ok && timeName != "" && x.Name == timeName && slices.Contains(clock, n.Sel.Name) {
				out = append(out, violation{n.Pos(), "time." + n.Sel.Name + ": layers 0 to 2 get the time as a value"})
			}
		}
		return true
	})
	return out
}

func TestViolations(t *testing.T) {
	table := map[string]rule{
		"pkg/low":     {layer: 0},
		"pkg/typed":   {layer: 1, external: []string{"k8s.io/api"}},
		"pkg/a":       {layer: 2, siblings: []string{"pkg/b"}},
		"pkg/b":       {layer: 2},
		"pkg/sandbox": {layer: 2, impure: true},
		"pkg/load":    {layer: 3},
		"cmd/x":       {layer: 4},
	}
	for _, tt := range []struct{ from, imports, want string }{
		{"pkg/low", "strings", ""},
		{"pkg/low", "net/netip", ""},
		{"pkg/low", "net/url", ""},
		{"pkg/low", "os", "no files"},
		{"pkg/low", "os/exec", "no files"},
		{"pkg/low", "net", "no files"},
		{"pkg/low", "net/http", "no files"},
		{"pkg/low", "log/slog", "no files"},
		{"pkg/low", "math/rand/v2", "no files"},
		{"pkg/low", "k8s.io/api/core/v1", "standard library and the modules listed"},
		{"pkg/low", module + "/pkg/typed", "of layer 1, above"},
		{"pkg/typed", "k8s.io/api/core/v1", ""},
		{"pkg/typed", "k8s.io/apiserver", "standard library and the modules listed"},
		{"pkg/typed", module + "/pkg/low", ""},
		{"pkg/a", module + "/pkg/b", ""},
		{"pkg/b", module + "/pkg/a", "of the same layer"},
		{"pkg/b", module + "/pkg/load", "of layer 3, above"},
		{"pkg/b", module + "/internal/golden", "helpers for tests"},
		{"pkg/b", "k8s.io/client-go/rest", "belong to layers 3 and 4"},
		{"pkg/b", "github.com/spf13/cobra", "belong to layers 3 and 4"},
		{"pkg/b", "sigs.k8s.io/yaml", ""},
		{"pkg/sandbox", "net", ""},
		{"pkg/load", "k8s.io/client-go/rest", ""},
		{"pkg/load", module + "/cmd/x", "of layer 4, above"},
		{"cmd/x", module + "/pkg/load", ""},
		{"cmd/x", module + "/internal/golden", "helpers for tests"},
		{"pkg/new", "strings", "has no layer"},
		{"pkg/util", "strings", "says nothing"},
		{"internal/golden", "os", ""},
		{"internal/common", "os", "says nothing"},
	} {
		got := violations([]pkg{{ImportPath: module + "/" + tt.from, Imports: []string{tt.imports}}}, table)
		ok := len(got) == 0
		if tt.want != "" {
			ok = len(got) > 0 && strings.Contains(got[0], tt.want)
		}
		if !ok {
			t.Errorf("%s imports %s: %q, want %q", tt.from, tt.imports, got, tt.want)
		}
	}
}

func TestSourceViolations(t *testing.T) {
	const source = `package p

import clock "time"

func init() {}

func (t T) init() {}

func f(now clock.Time) clock.Duration {
	go f(now)
	return clock.Since(now) + clock.Second
}
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	texts := func(vs []violation) (out []string) {
		for _, v := range vs {
			text, _, _ := strings.Cut(v.text, ":")
			out = append(out, text)
		}
		return out
	}
	for layer, want := range map[bool][]string{
		true:  {"func init", "go statement", "time.Since"},
		false: {"func init"},
	} {
		if diff := gocmp.Diff(want, texts(sourceViolations(file, layer))); diff != "" {
			t.Errorf("pure %v (-want +got):\n%s", layer, diff)
		}
	}
}

// list returns the packages of the module, sorted. A package that does not compile is listed all the same.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,Imports", "./...")
	cmd.Dir = filepath.Join("..", "..")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing packages: %v\n%s", err, &stderr)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("reading the list of packages: %v", err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) == 0 {
		t.Fatal("go list names no package")
	}
	slices.SortFunc(pkgs, func(a, b pkg) int { return cmp.Compare(a.ImportPath, b.ImportPath) })
	return pkgs
}

func rel(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, module), "/") }

// isStandard reports whether path is of the standard library: only its paths have no dot in the first element.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// matches reports whether path is one of the patterns, or below one that ends in a slash.
func matches(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return path == p || strings.HasSuffix(p, "/") && strings.HasPrefix(path, p)
	})
}

// under reports whether path is one of the prefixes or below one.
func under(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
}
