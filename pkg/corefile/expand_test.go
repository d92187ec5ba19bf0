package corefile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func expandFS(files map[string]string, env map[string]string) Options {
	fsys := fstest.MapFS{}
	for name, data := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return Options{
		Path:   "/etc/coredns/Corefile",
		Import: ImportFS(fsys, filepath.Base),
		Env: func(name string) (string, bool) {
			value, ok := env[name]
			return value, ok
		},
	}
}

func TestExpand(t *testing.T) {
	const src = `(common) {
    errors
    cache {$TTL}
}
example.org {$MORE} {
    import common
    import custom/*.override
    log {
        import classes
    }
    forward . {%UPSTREAM%}
}
import custom/*.server
import none/*.server
`
	opts := expandFS(map[string]string{
		"etc/coredns/custom/a.override":  "whoami\nimport more/b\n",
		"etc/coredns/custom/more/b":      "ready\n",
		"etc/coredns/custom/corp.server": "# corp\ncorp.example.test {\n  log\n}\n",
		"etc/coredns/classes":            "class error",
	}, map[string]string{"TTL": "1 1m", "MORE": "a b"})
	f, err := Parse("Corefile", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	view, err := Expand(f, opts)
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, b := range view.Blocks {
		got = append(got, dumpBlock(b))
		for _, d := range b.Body {
			d.Walk(func(d *Directive) {
				line := d.Position().String()
				for via := d.Name.Via; via != nil; via = via.Parent {
					line += " < " + via.At.Position().String()
				}
				o := d.Origin()
				if o == nil || o.Name.Start != d.Name.Start || o.File() != d.File() {
					t.Errorf("origin of %s is %v", dumpDirective(d), o)
				}
				got = append(got, fmt.Sprintf("  %s %s", d.Name.Text, line))
			})
		}
		if b.Origin() == nil {
			t.Errorf("block %s has no origin", dumpBlock(b))
		}
	}
	want := []string{
		"example.org,a b(errors; cache 1 1m; whoami; ready; log(class error); forward . )",
		"  errors Corefile:2:5 < Corefile:6:5",
		"  cache Corefile:3:5 < Corefile:6:5",
		"  whoami a.override:1:1 < Corefile:7:5",
		"  ready b:1:1 < a.override:2:1 < Corefile:7:5",
		"  log Corefile:8:5",
		"  class classes:1:1 < Corefile:9:9",
		"  forward Corefile:11:5",
		"corp.example.test(log)",
		"  log corp.server:3:3 < Corefile:13:1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	if arg := view.Blocks[0].Body[1].Args; len(arg) != 1 || arg[0].Text != "1 1m" || arg[0].Source() != "{$TTL}" {
		t.Errorf("a value was split: %+v", arg)
	}
	if len(view.Unset) != 1 || view.Unset[0].Name != "UPSTREAM" || view.Unset[0].Token.Position().Line != 11 {
		t.Errorf("unset: %+v", view.Unset)
	}
	if len(view.Empty) != 1 || view.Empty[0].Position().Line != 14 {
		t.Errorf("empty: %+v", view.Empty)
	}
	if got := len(view.Files); got != 5 {
		t.Errorf("%d files", got)
	}
	if lead := view.Blocks[1].Lead(); len(lead) != 1 || lead[0].Text != "# corp" {
		t.Errorf("comments of the imported block: %v", lead)
	}

	// A fix of an expanded directive is one of the file that holds it.
	d := view.Blocks[0].Body[2]
	edit, err := d.Delete()
	if err != nil {
		t.Fatal(err)
	}
	out, err := Apply([]byte(d.Origin().File().Src), []Edit{edit})
	if want := "import more/b\n"; err != nil || string(out) != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
}

func TestExpandErrors(t *testing.T) {
	files := map[string]string{
		"etc/coredns/loop":      "log\nimport loop\n",
		"etc/coredns/ping":      "import pong\n",
		"etc/coredns/pong":      "import ping\n",
		"etc/coredns/bad":       "log }\n",
		"etc/coredns/dir/file":  "log\n",
		"etc/coredns/some/*lit": "log\n",
	}
	bomb := "(s0) {\nlog\n}\n"
	for i := range 40 {
		bomb += fmt.Sprintf("(s%d) {\nimport s%d\nimport s%d\n}\n", i+1, i, i)
	}
	for _, test := range []struct{ name, src, want string }{
		{"missing file", ". {\n  import no\n}", "c:2:3: file to import not found: no"},
		{"missing snippet", ". {\n  import s\n}\n(s) {\n}", "c:2:3: file to import not found: s"},
		{"cycle", ". {\n  import loop\n}", `loop:2:1: "/etc/coredns/loop" imports itself (imported at c:2:3)`},
		{"long cycle", "import ping", `pong:1:1: "/etc/coredns/ping" imports itself (imported at ping:1:1) (imported at c:1:1)`},
		{"cycle of snippets", "(a) {\nimport b\n}\n(b) {\nimport a\n}\n. {\nimport a\n}", `c:5:1: "a" imports itself (imported at c:2:1) (imported at c:8:1)`},
		{"fault in an imported file", ". {\n  import bad\n}", `bad:1:5: unexpected "}", no block of "log" is open; a closing brace stands on its own line (imported at c:2:3)`},
		{"directory", ". {\n  import dir\n}", `c:2:3: importing "dir": /etc/coredns/dir is a directory`},
		{"two wildcards", "import */*", `c:1:1: import of "*/*": only one * and one ? are allowed, and no [ ]`},
		{"recursive variable", ". {\n log {$A}\n}", "c:2:6: more than 100 references to the environment in one word"},
		{"large variable", ". {\n log {$B}{$B}{$B}{$B} {$B}{$B}{$B}{$B} {$B}\n}", "c:2:40: environment variables bring in more than 16777216 bytes"},
		{"empty name", "import {$NO}", "c:1:8: import of an empty name"},
		{"bomb", bomb + ". {\nimport s40\n}", "more than 10000 imports"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := Parse("c", []byte(test.src))
			if err != nil {
				t.Fatal(err)
			}
			_, err = Expand(f, expandFS(files, map[string]string{"A": "x{$A}", "B": strings.Repeat("b", MaxSize)}))
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestExpandLimits(t *testing.T) {
	f, err := Parse("c", []byte("(s) {\na b c\n}\n. {\nimport s\nimport s\n}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Expand(f, Options{MaxImports: 2, MaxTokens: 6}); err != nil {
		t.Error(err)
	}
	if _, err := Expand(f, Options{MaxImports: 1}); err == nil || !strings.Contains(err.Error(), "more than 1 imports") {
		t.Error(err)
	}
	if _, err := Expand(f, Options{MaxTokens: 5}); err == nil || !strings.Contains(err.Error(), "more than 5 words") {
		t.Error(err)
	}
}

func TestExpandNotRead(t *testing.T) {
	f, err := Parse("c", []byte(". {\nimport custom/x\nlog\n}"))
	if err != nil {
		t.Fatal(err)
	}
	view, err := Expand(f, Options{Import: func(pattern string) ([]Source, error) {
		return nil, fmt.Errorf("config map %s: %w", pattern, ErrNotRead)
	}})
	if err != nil || len(view.Unread) != 1 || dumpBlock(view.Blocks[0]) != ".(log)" {
		t.Errorf("%+v, %v", view, err)
	}
}

// TestExpandLikeCaddy covers what depends on files, in the file system that caddy reads.
func TestExpandLikeCaddy(t *testing.T) {
	quiet(t)
	dir := t.TempDir()
	for name, data := range map[string]string{
		"a.conf": "log\nerrors {\n x\n}", "b.conf": "import sub/c.conf", "sub/c.conf": "import d.conf\ncache", "sub/d.conf": "ready",
		"keys": "a b,", "unbalanced": "log {\n", "snippet": "(s) {\n whoami\n}\n", "server": "x {\n import s\n}\n",
	} {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(data), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, src := range []string{
		". {\nimport a.conf\n}",
		". {\nimport *.conf\n}",
		". {\nimport ?.conf\nx\n}",
		". {\nimport b.conf\n}",
		". {\nimport sub/*\n}",
		". {\nimport no/*\n}",
		". {\nimport no\n}",
		". {\nimport sub\n}",
		". {\nimport [a].conf\n}",
		"import keys\nc {\n log\n}",
		"x,\nimport keys\nc {\n log\n}",
		". {\nimport unbalanced\n}\n}",
		". {\nimport unbalanced\n}",
		"import snippet\nimport server\ny {\n import s\n}",
		"import server\nimport snippet",
		"import no/*",
		"a,\nimport no/*",
		"import no/*\nimport no/*\nb",
		". {\nlog {\nimport a.conf\n}\n}",
		"import " + dir + "/a.conf",
	} {
		opts := Options{Path: filepath.Join(dir, "Corefile"), Import: ImportFS(os.DirFS("/"), nil)}
		compareWithCaddy(t, []byte(src), opts)
	}
}

func BenchmarkExpand(b *testing.B) {
	src := []byte("(s) {\nerrors\ncache {$TTL}\n}\n" + strings.Repeat("example.org {\n    import s\n    forward . {$UPSTREAM} {\n        policy sequential\n    }\n}\n", 5000))
	f, err := Parse("", src)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Expand(f, Options{Env: func(string) (string, bool) { return "30", true }}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestImportFSBounds(t *testing.T) {
	opts := expandFS(map[string]string{"big": string(bytes.Repeat([]byte("#"), MaxSize+1))}, nil)
	f, err := Parse("c", []byte("import /big"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Expand(f, opts)
	if want := fmt.Sprintf("c:1:1: importing %q: big has %d bytes, more than %d are not read", "/big", MaxSize+1, MaxSize); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
