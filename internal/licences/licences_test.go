package licences

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dnsmesh/kubectl-dnsmesh/internal/golden"
)

// TestThirdPartyLicenses compares THIRD_PARTY_LICENSES with what is linked into the plugin now; make update writes it.
func TestThirdPartyLicenses(t *testing.T) {
	root := filepath.Join("..", "..")
	texts, err := Gather(root, Platforms(), "./cmd/kubectl-dnsmesh")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join(root, "THIRD_PARTY_LICENSES"), Format(texts))
}

const (
	mit = "Permission is hereby granted, free of charge, to any person\nobtaining a copy of this software …"
	bsd = "Redistributions of source code must retain the above copyright notice …\n" +
		"Redistributions in binary form must reproduce the above copyright notice …\n"
)

func TestClassify(t *testing.T) {
	for text, want := range map[string]string{
		mit: "MIT",
		bsd: "BSD-2-Clause",
		bsd + "… to endorse or promote products …":                                "BSD-3-Clause",
		"Apache License\n   Version 2.0, January 2004":                            "Apache-2.0",
		"Apache License\nVersion 2.0\n" + mit:                                     "Apache-2.0 AND MIT",
		"Mozilla Public License Version 2.0 … the GNU General Public License, …":  "MPL-2.0",
		"Mozilla Public License, version 2.0 … the GNU General Public License, …": "MPL-2.0",
		"GNU GENERAL PUBLIC LICENSE\nVersion 3":                                   "",
		"GNU LESSER GENERAL PUBLIC LICENSE":                                       "",
		"All rights reserved.":                                                    "",
	} {
		if got := classify(text); got != want {
			t.Errorf("classify(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestGather reads a module that is replaced by a folder, whose licence and whose notice are in the list, and with them
// the licence of a folder with code taken over, but not those of folders that are not linked in.
func TestGather(t *testing.T) {
	root := tree(t, nil)
	texts, err := Gather(root, Platforms()[:1], "./cmd")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, text := range texts {
		if text.Files[0] == "Go standard library/LICENSE" {
			continue
		}
		for _, file := range text.Files {
			got = append(got, text.Licence+" "+file)
		}
	}
	want := []string{
		"BSD-2-Clause ./dep@/taken/over/COPYING.md",
		"MIT ./dep@/LICENSE",
		"NOTICE ./dep@/NOTICE",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	if out := string(Format(texts)); !strings.Contains(out, "MIT           ./dep@/LICENSE\n") || !strings.Contains(out, "\n\n"+mit+"\n") {
		t.Errorf("Format leaves out the licence:\n%s", out)
	}
}

func TestGatherErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change map[string]string
		want   string
	}{
		{"none", map[string]string{"dep/LICENSE": ""}, "has no licence file"},
		{"only a folder's", map[string]string{"dep/LICENSE": "", "dep/NOTICE": ""}, "has no licence file"},
		{"copyleft", map[string]string{"dep/LICENSE": "GNU General Public License"}, "may be linked in"},
		{"unknown", map[string]string{"dep/taken/over/COPYING.md": "Ask me."}, "may be linked in"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Gather(tree(t, tt.change), Platforms()[:1], "./cmd"); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Gather = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// tree writes a module that links in a package of another one, with changes; an empty text leaves the file out.
func tree(t *testing.T, changes map[string]string) string {
	t.Helper()
	files := map[string]string{
		"go.mod":                    "module example.org/main\n\ngo 1.24\n\nrequire example.org/dep v0.0.0\n\nreplace example.org/dep => ./dep\n",
		"cmd/main.go":               "package main\n\nimport _ \"example.org/dep/taken/over\"\n\nfunc main() {}\n",
		"LICENSE":                   "ours",
		"dep/go.mod":                "module example.org/dep\n\ngo 1.24\n",
		"dep/LICENSE":               mit,
		"dep/NOTICE":                "Dep, made by its authors.",
		"dep/license.go":            "package dep\n",
		"dep/taken/over/over.go":    "package over\n",
		"dep/taken/over/COPYING.md": bsd,
		"dep/other/other.go":        "package other\n",
		"dep/other/LICENSE":         "Not linked in.",
	}
	for name, text := range changes {
		files[name] = text
	}
	root := t.TempDir()
	for name, text := range files {
		if text == "" {
			continue
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
