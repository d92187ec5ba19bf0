package reference

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestText reads every file of the archives in testdata/text and compares with the file "want" of the same archive: the
// place, host and port, strength and key path of each reference, in the order of the files.
func TestText(t *testing.T) {
	archives, err := filepath.Glob("testdata/text/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("finding archives: %v, %d found", err, len(archives))
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var got, want []string
			f := NewFinder(Options{})
			for _, file := range txtar.Parse(data).Files {
				if file.Name == "want" {
					for line := range strings.Lines(string(file.Data)) {
						want = append(want, strings.TrimSpace(line))
					}
					continue
				}
				refs := f.Text(file.Name, string(file.Data))
				for _, r := range refs {
					host := strings.TrimSuffix(short([]Reference{r}), "?")
					got = append(got, strings.TrimSpace(fmt.Sprintf("%s:%d %s %s %s", file.Name, r.Origin.Line, host, r.Strength, r.Origin.Key)))
				}
				crlf := strings.ReplaceAll(string(file.Data), "\n", "\r\n")
				if diff := cmp.Diff(short(refs), short(f.Text(file.Name, crlf))); diff != "" {
					t.Errorf("%s with CRLF: %s", file.Name, diff)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}

// checkReferences tests what holds for every result.
func checkReferences(t *testing.T, text string, refs []Reference) {
	t.Helper()
	lines := strings.Split(strings.ToLower(text), "\n")
	for _, r := range refs {
		if !isHost(r.Host) || strings.ToLower(r.Host) != r.Host {
			t.Errorf("%q is no host name in lower case", r.Host)
		}
		if r.Port < 0 || r.Port > 65535 {
			t.Errorf("port %d of %q", r.Port, r.Host)
		}
		if r.Strength != Likely && r.Strength != Certain {
			t.Errorf("strength %d of %q", r.Strength, r.Host)
		}
		if n := r.Origin.Line; n < 1 || n > len(lines) || !strings.Contains(lines[n-1], r.Host) && !strings.Contains(unquoted.Replace(lines[n-1]), r.Host) {
			t.Errorf("line %d does not hold %q", n, r.Host)
		}
	}
	if len(refs) > MaxReferences {
		t.Errorf("%d references", len(refs))
	}
}

// unquoted takes off what a shell takes off: a"b" is the word ab.
var unquoted = strings.NewReplacer(`"`, "", "'", "", `\`, "")

func FuzzFromText(f *testing.F) {
	archives, err := filepath.Glob("testdata/text/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(data).Files {
			f.Add(file.Name, file.Data)
		}
	}
	f.Add("x", []byte("a: {b: [\"http://c\nd\", \"\\n\"]"))
	f.Add("x", []byte("{\"\"\"\n$0A0://A"))
	f.Add("x", []byte("#!sh\nA\"://A0:1\n0\""))
	f.Add("x", []byte("#!sh\nHOST=a0\"1"))
	f.Add("x", []byte("0: \n>  "))
	f.Add("x.sh", []byte("a&B\"=\n$0A0://A"))
	f.Add("x.sh", []byte("a <<E\nhttp://b\nE\n\"$(c `http://d`"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		text := string(data)
		checkReferences(t, text, FromText(name, text, Options{}))
	})
}

// TestBounds gives texts that are made to cost much and sees that they end, within the bounds.
func TestBounds(t *testing.T) {
	for name, unit := range map[string]string{
		"urls.txt": "http://a ", "lines.yaml": "a: http://b\n", "list.yaml": "- [\n", "deep.json": "[{", "deep.yaml": "a: {",
		"sh.sh": "$(", "tick.sh": "`a", "quote.sh": "\"'", "here.sh": "a <<E\n", "xml.xml": "<a b='", "xmltag.xml": "<a>", "svc": "a.svc",
		"tcp": "@tcp(", "pairs": "host=a port=", "templates": "{{${$(", "brackets.toml": "a=[\n", "comma": ",", "block.yaml": "a: |\n",
		"oracle": "jdbc:oracle:@", "up.conf": "upstream a\nproxy_pass http://b;\n", "manifest.yaml": "---\n", "dash.yaml": "- ",
		"scheme": "a+", "code.py": "ALLOWED=[\n", "line.py": "origin=[", "tuple.py": "ALLOWED=(\n", "literals.py": "origin='a' ",
		"Caddyfile": "reverse_proxy a {\n", "record.conf": "<record>\n", "relabel.yaml": "- replacement: a:1\n",
		"relabel.json": `{"replacement":"a:1"},`, "openapi.json": `{"openapi":`, "at": "://@", "json.json": `{"a":"`, "escapes.json": `["\n`,
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat(unit, MaxText/len(unit)+10)
			if refs := FromText(name, text, Options{}); len(refs) > MaxReferences {
				t.Errorf("%d references", len(refs))
			}
			s := newScanner("cluster.local", Origin{Kind: Env})
			s.variable("X_HOSTS", text)
			s.argv([]word{{text: "sh"}, {text: "-c"}, {text: text}}, 0)
		})
	}
}

func TestTextIsCut(t *testing.T) {
	text := strings.Repeat("\n", MaxText) + "http://late\n"
	if refs := FromText("x.yaml", text, Options{}); len(refs) != 0 {
		t.Errorf("read behind MaxText: %v", refs)
	}
}

func BenchmarkFromText(b *testing.B) {
	plain := strings.Repeat("server:\n  # nothing to see here\n  logLevel: info\n  replicas: 3\n  message: some words of text\n  ratio: 0.75\n", 2000)
	prose := strings.Repeat("some words of a text that names no host at all and goes on for a while\n", 2000)
	hosts := strings.Repeat("ledger:\n  url: http://ledger:8080/x\n  brokers: a:9092,b:9092\n  logLevel: info\n", 200)
	conf := strings.Repeat("    location / {\n        expires 30d;\n        gzip on;\n    }\n", 2000)
	for _, bb := range []struct{ name, file, text string }{
		{"plain", "a.yaml", plain},
		{"prose", "a", prose},
		{"properties", "a.properties", strings.Repeat("log.level.root=info\ncache.size = 100\n", 3000)},
		{"hosts", "a.yaml", hosts},
		{"conf", "a.conf", conf},
		{"json", "a.json", "[" + strings.Repeat(`{"level":"info","replicas":3,"message":"some words"},`+"\n", 3000) + "{}]"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.text)))
			b.ReportAllocs()
			for b.Loop() {
				FromText(bb.file, bb.text, Options{})
			}
		})
	}
}

func BenchmarkVariable(b *testing.B) {
	for _, bb := range []struct{ name, value string }{
		{"LOG_LEVEL", "info"}, {"LEDGER_URL", "http://ledger:8080/x"}, {"TEXT", string(bytes.Repeat([]byte("some words "), 10))},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.name) + len(bb.value)))
			b.ReportAllocs()
			for b.Loop() {
				s := newScanner("cluster.local", Origin{Kind: Env})
				s.variable(bb.name, bb.value)
			}
		})
	}
}

func TestBlankKeepsPlaces(t *testing.T) {
	for in, want := range map[string]string{
		"a${b}c":         "a....c",
		"a{{ b }}c":      "a.......c",
		"a$(b $(c))d":    "a.........d",
		"a$b-c":          "a..-c",
		"a%(b)sc":        "a.....c",
		"<%= a %>b":      "........b",
		"#{a}b":          "....b",
		"a{{b\n}}":       "a..b\n}}",
		"a${b\n}":        "a..b\n}",
		"$":              "$",
		"a$ b":           "a$ b",
		"${A:-http://b}": strings.Repeat(".", 14),
	} {
		if got := strings.ReplaceAll(blank(in), unknown, "."); got != want {
			t.Errorf("blank(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestSyntaxNames(t *testing.T) {
	var got []string
	for _, name := range []string{"a.yaml", "A.YML", "a.yaml.tmpl", "Corefile", "x/nginx.conf", "tls.crt", "a", "application.properties", ".env", "a.sh"} {
		got = append(got, fmt.Sprint(syntaxOf(name)))
	}
	want := []syntax{yamlText, yamlText, yamlText, unread, confText, unread, guessed, pairText, pairText, shellText}
	if !slices.EqualFunc(got, want, func(a string, b syntax) bool { return a == fmt.Sprint(b) }) {
		t.Errorf("got %v, want %v", got, want)
	}
}
