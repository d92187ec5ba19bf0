// Package licences gathers the licence texts of everything that is linked into the plugin. Its test compares them with
// THIRD_PARTY_LICENSES, and writes that file with -update.
package licences

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Platform is an operating system and an architecture, in Go's names.
type Platform struct{ OS, Arch string }

// Platforms are those that releases are built for. What is linked in differs a little between them.
func Platforms() []Platform {
	return []Platform{
		{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
	}
}

// Text is one licence or notice file, and who comes under it.
type Text struct {
	// Licence is an SPDX identifier, or "NOTICE" for the notice that the Apache licence asks to pass on.
	Licence string
	Body    string
	// Files are the places of the file: module@version/path, sorted.
	Files []string
}

// module is a module, or the standard library, with the folders that hold packages linked in.
type module struct {
	name     string // path@version
	dir      string
	packages map[string]bool // folders
}

// Gather returns the licence texts of all that the packages link in on any of the platforms, apart from the main module.
// The packages are patterns of the go command, root is the folder of the module. Texts that are equal but for spaces
// are one Text. It is an error if a module has no licence that is known and permissive.
func Gather(root string, platforms []Platform, packages ...string) ([]Text, error) {
	modules := make(map[string]*module)
	for _, p := range platforms {
		if err := list(modules, root, p, packages); err != nil {
			return nil, fmt.Errorf("listing what is linked in on %s/%s: %w", p.OS, p.Arch, err)
		}
	}
	texts := make(map[string]*Text)
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		m := modules[name]
		files, err := find(m)
		if err != nil {
			return nil, fmt.Errorf("looking for the licence of %s: %w", name, err)
		}
		licensed := false
		for _, file := range files {
			body, err := os.ReadFile(filepath.Join(m.dir, file))
			if err != nil {
				return nil, fmt.Errorf("reading the licence of %s: %w", name, err)
			}
			place := name + "/" + filepath.ToSlash(file)
			id := "NOTICE"
			if !isNotice(file) {
				if id = classify(string(body)); id == "" {
					return nil, fmt.Errorf("%s is not a licence that may be linked in, or not one that is known", place)
				}
				licensed = licensed || filepath.Dir(file) == "."
			}
			key := strings.Join(strings.Fields(string(body)), " ")
			if texts[key] == nil {
				texts[key] = &Text{Licence: id, Body: string(body)}
			}
			texts[key].Files = append(texts[key].Files, place)
		}
		if !licensed {
			return nil, fmt.Errorf("%s has no licence file", name)
		}
	}
	return slices.SortedFunc(func(yield func(Text) bool) {
		for _, t := range texts {
			if !yield(*t) {
				return
			}
		}
	}, func(a, b Text) int {
		return cmp.Or(cmp.Compare(a.Licence, b.Licence), cmp.Compare(a.Files[0], b.Files[0]))
	}), nil
}

// list adds to modules what the packages link in on one platform.
func list(modules map[string]*module, root string, p Platform, packages []string) error {
	args := append([]string{"list", "-mod=readonly", "-deps", "-json=ImportPath,Dir,Standard,Module"}, packages...)
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+p.OS, "GOARCH="+p.Arch, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, &stderr)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg struct {
			ImportPath, Dir string
			Standard        bool
			Module          *struct {
				Path, Version, Dir string
				Main               bool
				Replace            *struct{ Path, Version string }
			}
		}
		if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var m module
		switch {
		case pkg.Standard:
			// What the standard library has in its vendor folder is under the same licence.
			m = module{name: "Go standard library", dir: goroot(pkg.Dir, pkg.ImportPath)}
			pkg.Dir = m.dir
		case pkg.Module == nil:
			return fmt.Errorf("package %s is of no module", pkg.ImportPath)
		case pkg.Module.Main:
			continue
		case pkg.Module.Replace != nil:
			m = module{name: pkg.Module.Replace.Path + "@" + pkg.Module.Replace.Version, dir: pkg.Module.Dir}
		default:
			m = module{name: pkg.Module.Path + "@" + pkg.Module.Version, dir: pkg.Module.Dir}
		}
		if modules[m.name] == nil {
			m.packages = make(map[string]bool)
			modules[m.name] = &m
		}
		modules[m.name].packages[pkg.Dir] = true
	}
}

// goroot returns the root of the Go tree, given the folder of one of its packages: the folder without src/path.
func goroot(dir, importPath string) string {
	return filepath.Dir(strings.TrimSuffix(dir, string(filepath.Separator)+filepath.FromSlash(importPath)))
}

// find returns the licence and notice files in the root of the module and in every folder between it and a package that
// is linked in: code taken over from elsewhere has its own licence in its own folder. Paths are relative to the root and
// sorted.
func find(m *module) ([]string, error) {
	folders := map[string]bool{".": true}
	for dir := range m.packages {
		below, err := filepath.Rel(m.dir, dir)
		if err != nil {
			return nil, err
		}
		for ; below != "." && !strings.HasPrefix(below, ".."); below = filepath.Dir(below) {
			folders[below] = true
		}
	}
	var files []string
	for folder := range folders {
		entries, err := os.ReadDir(filepath.Join(m.dir, folder))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Type().IsRegular() && isLicence(e.Name()) {
				files = append(files, filepath.Join(folder, e.Name()))
			}
		}
	}
	slices.Sort(files)
	return files, nil
}

// isLicence tells by its name whether a file holds a licence or a notice. Sources such as license.go do not.
func isLicence(name string) bool {
	name = strings.ToLower(name)
	ext := filepath.Ext(name)
	if ext == ".go" || ext == ".json" || ext == ".yaml" || ext == ".yml" || ext == ".sh" || ext == ".tmpl" {
		return false
	}
	for _, prefix := range []string{"license", "licence", "copying", "unlicense", "notice"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// isNotice tells a NOTICE file from a licence.
func isNotice(file string) bool {
	return strings.HasPrefix(strings.ToLower(filepath.Base(file)), "notice")
}

var spaces = regexp.MustCompile(`\s+`)

// classify returns the SPDX identifiers, joined with AND, of the permissive licences whose words the text holds, or ""
// where it holds none or a licence that binds the whole work.
func classify(text string) string {
	text = strings.ToLower(spaces.ReplaceAllString(text, " "))
	// HashiCorp writes the title of the MPL with a comma.
	text = strings.ReplaceAll(text, "mozilla public license, version", "mozilla public license version")
	if strings.Contains(text, "gnu general public license") || strings.Contains(text, "gnu affero") ||
		strings.Contains(text, "gnu lesser general public license") {
		// The text of the MPL names them as secondary licences.
		if !strings.Contains(text, "mozilla public license version 2.0") {
			return ""
		}
	}
	var ids []string
	for _, l := range []struct {
		id    string
		words []string
		not   string
	}{
		{"Apache-2.0", []string{"apache license", "version 2.0"}, ""},
		{"BSD-2-Clause", []string{"redistributions of source code must retain", "redistributions in binary form must reproduce"}, "endorse or promote"},
		{"BSD-3-Clause", []string{"redistributions of source code must retain", "redistributions in binary form must reproduce", "endorse or promote"}, ""},
		{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose"}, ""},
		{"ISC", []string{"permission to use, copy, modify, and distribute this software for any purpose"}, ""},
		{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy"}, ""},
		{"MPL-2.0", []string{"mozilla public license version 2.0"}, ""},
		{"Unlicense", []string{"free and unencumbered software released into the public domain"}, ""},
	} {
		all := !slices.ContainsFunc(l.words, func(w string) bool { return !strings.Contains(text, w) })
		if all && (l.not == "" || !strings.Contains(text, l.not)) {
			ids = append(ids, l.id)
		}
	}
	return strings.Join(ids, " AND ")
}

// Format writes the texts as THIRD_PARTY_LICENSES: a list of who comes under which licence, then every text once.
func Format(texts []Text) []byte {
	var b bytes.Buffer
	b.WriteString("kubectl-dnsmesh is under the Apache License 2.0 (see LICENSE). Its binaries contain the following works of others.\n" +
		"This file is generated: make update.\n\n")
	for _, t := range texts {
		for _, file := range t.Files {
			fmt.Fprintf(&b, "%-12s  %s\n", t.Licence, file)
		}
	}
	rule := strings.Repeat("=", 80)
	for _, t := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n", rule, t.Licence)
		for _, file := range t.Files {
			fmt.Fprintf(&b, "  %s\n", file)
		}
		body := strings.ReplaceAll(t.Body, "\r\n", "\n")
		fmt.Fprintf(&b, "%s\n\n%s\n", rule, strings.TrimRight(body, " \n"))
	}
	return b.Bytes()
}
