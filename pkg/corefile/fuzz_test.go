package corefile

import (
	"bytes"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// seeds are Corefiles that reach the corners of the syntax.
var seeds = []string{
	"",
	"\ufeff.:53 {\r\n\terrors\r\n}\r\n",
	"\ufeff\ufeffa",
	" \ufeffa",
	". {\n    log a#b c\n    log \"a\"#b c\n}\n",
	"a\rb \r\"q\"\r#c d\r\n\re",
	"\"a\"\"b\"c\"d\" \"e\nf\" g\n",
	`"a\"b\\" "c\d" "`,
	`. "a\`,
	`"`,
	"a#\rb\r\rc\u00a0d\x85e\xff\xc3\r\xa9#\xff",
	"a, b,\n c {\n whoami\n}\n",
	"a, b,",
	",\n{",
	"a,\n{",
	"{\nerrors\n}\n",
	".\nerrors\nlog {\n class all\n}\n",
	".\nlog\n}\n. {\n}",
	".\n{\nerrors\n}",
	". { }  b { }",
	". { errors\n}",
	". { errors }",
	". {\nlog\n{\nclass all\n}\n}",
	". {\nlog {\n}\n",
	". {\nlog {\n",
	". {\nlog {\n} a {\n b\n} c\n}\n",
	". {\nlog {\n{\na\n}\n{\n}\n} }",
	". {\nlog { class all }\n}\n",
	". {\nlog {\na {\nb {\nc d {\n}\n}\n}\n}\n}\n",
	"(s) {\n errors\n log {\n  class all\n }\n}\n. {\n import s\n}\nb {\n import s\n import s\n}",
	"(s) {\n. {\n errors\n}\n}\nimport s\n",
	"(b) {\nimport a\nlog\n}\n(a) {\n\n\n\n\nerrors\n}\n. {\nimport b\ncache\n}",
	"(a) {\n import b\n cache\n}\n(b) {\n log\n}\n. {\n import a\n}",
	"(s) {\n class all\n}\n. {\nlog {\nimport s\nimport s\n}\n}",
	"(s) {\n import s\n}",
	"(s) {\n}\n(s) {\n}",
	"(s)",
	"(s)\n{\n}\n. {\nimport s\n}",
	"() {\nlog\n}\n. {\nimport \"\"\n}",
	"(s) { {\n} }\nimport s",
	". {\n import a b\n}",
	". {\n import\n}",
	"{$DM_A} {$DM_BRACE}\n{$DM_IMPORT} x\n log {$DM_LINES} x\n",
	"a{%DM_A%}b{$DM_NONE}c{$}{%}{$DM_REF} {\n {$DM_A} {$DM_A}\n log {\n {$DM_BRACE}\n}\n}",
	". {\n log {$DM_CLOSE}\n}\n",
	"\"\" a {\n}\n\"\"\nb",
	"# c\n\n# d\n. { # e\n  # f\n  errors # g\n\n  # h\n} # i\n# j",
	"}\n}\n",
	"import",
	". {\n}\nimport x",
}

// setEnv sets the variables that the seeds use, so that caddy sees them as well.
func setEnv(tb testing.TB) {
	for name, value := range map[string]string{
		"DM_A": "1 1m", "DM_BRACE": "{", "DM_CLOSE": "}", "DM_LINES": "a\nb", "DM_REF": "{$DM_A},", "DM_IMPORT": "import",
	} {
		tb.Setenv(name, value)
	}
}

// quiet drops what caddy logs about globs without a match.
func quiet(tb testing.TB) {
	log.SetOutput(io.Discard)
	tb.Cleanup(func() { log.SetOutput(os.Stderr) })
}

func addSeeds(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	for _, s := range fixtures(f) {
		f.Add(s)
	}
}

// FuzzRoundTrip: the tokens cover the source, whatever it is, and the positions of the tree are those of its words.
func FuzzRoundTrip(f *testing.F) {
	addSeeds(f)
	f.Fuzz(checkRoundTrip)
}

func checkRoundTrip(t *testing.T, src []byte) {
	for _, parse := range []func(string, []byte) (*File, error){Parse, ParseBody} {
		file, err := parse("Corefile", src)
		checkCover(t, file, src)
		var syntax *Error
		if err != nil && (!errors.As(err, &syntax) || syntax.Position.Line < 1 || syntax.Position.Col < 1) {
			t.Fatalf("error without a place: %#v", err)
		}
		for _, b := range slices.Concat(file.Blocks, file.Snippets) {
			checkRange(t, src, b.Range())
			for _, d := range b.Body {
				if err == nil && (d.Range().Start < b.Range().Start || d.Range().End > b.Range().End) {
					t.Fatalf("directive %v outside of block %v", d.Range(), b.Range())
				}
			}
		}
		for _, d := range file.Body {
			checkRange(t, src, d.Range())
		}
	}
}

func checkCover(t *testing.T, file *File, src []byte) {
	t.Helper()
	var b strings.Builder
	pos := 0
	for i, token := range file.Tokens {
		if token.Start != pos || token.End <= token.Start || int(token.index) != i {
			t.Fatalf("token %d is %v after %d", i, token.Range, pos)
		}
		pos = token.End
		b.WriteString(token.Source())
		if got := token.Position().Line; got != token.Line {
			t.Fatalf("token %d is on line %d and at %v", i, token.Line, token.Position())
		}
	}
	if b.String() != string(src) {
		t.Fatalf("tokens give %q for %q", b.String(), src)
	}
}

func checkRange(t *testing.T, src []byte, r Range) {
	t.Helper()
	if r.Start < 0 || r.End < r.Start || r.End > len(src) {
		t.Fatalf("range %v of %d bytes", r, len(src))
	}
}

// FuzzLexer: the words are those of caddy, text and line.
func FuzzLexer(f *testing.F) {
	addSeeds(f)
	f.Fuzz(checkLexer)
}

func checkLexer(t *testing.T, src []byte) {
	file, _ := Parse("Corefile", src)
	if diff := cmp.Diff(caddyWords(src), ourWords(file)); diff != "" {
		t.Fatalf("%q: words differ (-caddy +ours):\n%s", src, diff)
	}
}

// FuzzParse: Expand accepts what caddy accepts and reads the same keys and directives; without imports and variables
// Parse does too. a and b are files to import.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), []byte("log\nerrors {\n x\n}"), []byte("b {\n cache\n}\n"))
	}
	for _, s := range fixtures(f) {
		f.Add(s, []byte("log"), []byte(""))
	}
	f.Add([]byte("import a.conf\n. {\nimport *.conf\nimport a.conf\nlog {\nimport b.conf\n}\n}"), []byte("import b.conf\nx"), []byte("a"))
	f.Add([]byte("import a.conf\nb {\n}"), []byte("a,"), []byte(""))
	f.Add([]byte("a,\nimport a.conf\n"), []byte(""), []byte(""))
	f.Add([]byte("x\nimport a.conf\n"), []byte("import a.conf"), []byte(""))
	f.Add([]byte("import a.conf\nimport b.conf\n. {\nimport s\n}"), []byte("(s) {\nlog\n}"), []byte("b {\nimport s\n}"))
	f.Add([]byte("import no.conf\nimport no*.conf"), []byte(""), []byte(""))
	setEnv(f)
	quiet(f)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, src, a, b []byte) { checkParse(t, dir, src, a, b) })
}

func checkParse(t *testing.T, dir string, src, a, b []byte) {
	for name, data := range map[string][]byte{"a.conf": a, "b.conf": b} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opts := Options{Path: filepath.Join(dir, "Corefile"), Env: os.LookupEnv}
	// caddy opens what the input names: only the two files are of interest.
	outside := false
	files := os.DirFS("/")
	opts.Import = func(pattern string) ([]Source, error) {
		if filepath.Dir(pattern) != dir {
			outside = true
			return nil, nil
		}
		return ImportFS(files, nil)(pattern)
	}
	file, parseErr := Parse("Corefile", src)
	view, err := Expand(file, opts)
	if outside || limited(err) || limited(parseErr) {
		return
	}
	compareWithCaddy(t, src, opts)
	if bytes.Contains(src, []byte("import")) || bytes.Contains(src, []byte("{$")) || bytes.Contains(src, []byte("{%")) {
		return
	}
	if (err == nil) != (parseErr == nil) {
		t.Fatalf("%q:\nParse:  %v\nExpand: %v", src, parseErr, err)
	}
	if diff := cmp.Diff(ourBlocks(file.Blocks), ourBlocks(view.Blocks)); err == nil && diff != "" {
		t.Fatalf("%q: trees differ (-Parse +Expand):\n%s", src, diff)
	}
}

// limited reports whether this package refuses what caddy would follow (or would take too long over).
func limited(err error) bool {
	if err == nil {
		return false
	}
	for _, text := range []string{"imports itself", "more than"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// FuzzQuote: a spelling reads back as the text, anywhere.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a", "a b", `a"b`, `"`, `\`, `a b\`, `a\"b`, `a \\"`, "#", "a#b", "\ufeffx", "a\r\nb", "\xff", "{", "\ufffd", "a\u00a0b", `\ \`, `"\\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		spelled, err := Quote(s)
		if err != nil {
			// Only then: a word with blanks and an odd number of backslashes before a quotation mark or the end.
			if utf8.ValidString(s) && !strings.Contains(s, `\"`) && !strings.HasSuffix(s, `\`) {
				t.Fatalf("no spelling for %q: %v", s, err)
			}
			return
		}
		words := caddyWords([]byte(spelled))
		if len(words) != 1 || words[0].Text != s {
			t.Fatalf("%q is spelled %s, which reads %+v", s, spelled, words)
		}
		words = caddyWords([]byte("x " + spelled + " y"))
		if len(words) != 3 || words[1].Text != s || words[2].Text != "y" {
			t.Fatalf("%q is spelled %s, which reads %+v among others", s, spelled, words)
		}
	})
}

// lines are the words of a source by line, the relation that the server sees.
func lines(f *File) [][]string {
	var out [][]string
	for i := range f.words {
		if i == 0 || !sameLine(f.words[i-1], f.words[i]) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], f.words[i].Text)
	}
	return out
}

// FuzzFormat: the words and lines stay, comments stay, and a second run changes nothing.
func FuzzFormat(f *testing.F) {
	addSeeds(f)
	f.Fuzz(checkFormat)
}

func checkFormat(t *testing.T, src []byte) {
	before, _ := Parse("", src)
	once := Format(before)
	after, _ := Parse("", once)
	if diff := cmp.Diff(lines(before), lines(after)); diff != "" {
		t.Fatalf("%q became %q (-before +after):\n%s", src, once, diff)
	}
	if diff := cmp.Diff(comments(before), comments(after)); diff != "" {
		t.Fatalf("comments of %q became those of %q:\n%s", src, once, diff)
	}
	if twice := Format(after); !bytes.Equal(once, twice) {
		t.Fatalf("%q, formatted %q, formatted again %q", src, once, twice)
	}
}

func comments(f *File) []string {
	var out []string
	for _, t := range f.Tokens {
		if t.Kind == KindComment {
			out = append(out, strings.TrimSpace(t.Text))
		}
	}
	return out
}

// FuzzApply: edits change their bytes and no other, in any order; what overlaps is refused.
func FuzzApply(f *testing.F) {
	f.Add([]byte("0123456789"), 1, 2, "a", 4, 4, "b")
	f.Add([]byte("0123456789"), 1, 4, "a", 3, 5, "b")
	f.Add([]byte("0123456789"), 3, 3, "a", 3, 3, "b")
	f.Add([]byte("0123456789"), 3, 5, "a", 3, 3, "b")
	f.Add([]byte("0123456789"), 3, 5, "a", 5, 5, "")
	f.Add([]byte(""), 0, 0, "a", -1, 3, "b")
	f.Fuzz(func(t *testing.T, src []byte, s1, e1 int, n1 string, s2, e2 int, n2 string) {
		a, b := Edit{s1, e1, n1}, Edit{s2, e2, n2}
		got, err := Apply(src, []Edit{a, b})
		other, otherErr := Apply(src, []Edit{b, a})
		if (err == nil) != (otherErr == nil) || !bytes.Equal(got, other) {
			t.Fatalf("order matters: %q, %v and %q, %v", got, err, other, otherErr)
		}
		valid := func(e Edit) bool { return 0 <= e.Start && e.Start <= e.End && e.End <= len(src) }
		if a.Start > b.Start || a.Start == b.Start && a.End > b.End {
			a, b = b, a
		}
		apart := a.End <= b.Start && !(a.Start == a.End && b.Start == b.End && a.Start == b.Start)
		if want := valid(a) && valid(b) && apart; want != (err == nil) {
			t.Fatalf("edits %+v and %+v of %d bytes: %v", a, b, len(src), err)
		}
		if err != nil {
			return
		}
		want := string(src[:a.Start]) + a.New + string(src[a.End:b.Start]) + b.New + string(src[b.End:])
		if string(got) != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

// FuzzEdit: typed edits of a file that the server accepts change the words they are about and no other.
func FuzzEdit(f *testing.F) {
	addSeeds(f)
	f.Fuzz(checkEdits)
}

func checkEdits(t *testing.T, src []byte) {
	const text = "zz \"a b\" {\n  yy x\n}"
	added := []string{"zz", "a b", "{", "yy", "x", "}"}
	file, err := Parse("", src)
	if err != nil || len(src) > 2000 {
		return
	}
	words := texts(file)
	at := func(token Token) int {
		return slices.IndexFunc(file.words, func(w *Token) bool { return w.index == token.index })
	}
	after := func(edit Edit) *File {
		t.Helper()
		out, err := Apply(src, []Edit{edit})
		if err != nil {
			t.Fatal(err)
		}
		changed, _ := Parse("", out)
		return changed
	}
	check := func(what string, edit Edit, from, to int, with []string) {
		t.Helper()
		want := slices.Concat(words[:from], with, words[to:])
		got := texts(after(edit))
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s: %+v of %q (-want +got):\n%s", what, edit, src, diff)
		}
	}
	_, unclosed := file.Unclosed()
	if e, err := file.AppendBlock("zz {\nyy\n}"); err == nil {
		check("AppendBlock", e, len(words), len(words), []string{"zz", "{", "yy", "}"})
		if changed := after(e); len(changed.Blocks) != len(file.Blocks)+1 {
			t.Fatalf("appended to %q: %d blocks of %d", src, len(changed.Blocks), len(file.Blocks))
		}
	}
	for _, b := range slices.Concat(file.Blocks, file.Snippets) {
		e, err := b.Delete()
		if err != nil {
			t.Fatal(err)
		}
		check("Block.Delete", e, at(b.first()), at(b.last())+1, nil)
		for i, d := range b.Body {
			e, err := d.Delete()
			if err != nil {
				t.Fatal(err)
			}
			check("Directive.Delete", e, at(d.Name), at(d.last())+1, nil)
			if e, err := d.Replace(text); err == nil {
				check("Directive.Replace", e, at(d.Name), at(d.last())+1, added)
			}
			if e, err := d.AppendArgs("v w"); err == nil {
				head := d.Name
				if len(d.Args) > 0 {
					head = d.Args[len(d.Args)-1]
				}
				check("AppendArgs", e, at(head)+1, at(head)+1, []string{"v w"})
			}
			for _, value := range []string{"v", "v w"} {
				if e, err := d.Name.Replace(value); err == nil {
					check("Token.Replace", e, at(d.Name), at(d.Name)+1, []string{value})
				}
			}
			e, err = b.Insert(i, text)
			if err == nil {
				check("Block.Insert", e, at(d.Name), at(d.Name), added)
			} else if !unclosed {
				t.Fatal(err)
			}
			if e, err = d.Insert(len(d.Body), "zz"); err == nil {
				from, with := at(d.last()), []string{"zz"}
				switch {
				case d.Open == nil:
					from, with = at(d.head())+1, []string{"{", "zz", "}"}
				case d.Close != nil:
					from = at(*d.Close)
				}
				check("Directive.Insert", e, from, from, with)
			}
		}
		if e, err := b.Insert(len(b.Body), text); err == nil {
			from := at(b.last())
			with := added
			if b.Close == nil {
				from++
				if b.Open != nil {
					with = append(slices.Clone(added), "}")
				}
			}
			check("Block.Insert", e, from, from, with)
		} else if !unclosed {
			t.Fatal(err)
		}
	}
}

func texts(f *File) []string {
	out := []string{}
	for _, w := range f.words {
		out = append(out, w.Text)
	}
	return out
}

// TestRandomCorefiles puts sources together from pieces that matter to the syntax, which a fuzzer that changes bytes
// seldom does, and puts them to all the checks of the fuzz targets.
func TestRandomCorefiles(t *testing.T) {
	setEnv(t)
	quiet(t)
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	for range randomRuns {
		src := randomCorefile(random)
		checkRoundTrip(t, src)
		checkLexer(t, src)
		checkFormat(t, src)
		checkEdits(t, src)
		checkParse(t, dir, src, randomCorefile(random), randomCorefile(random))
	}
}

const randomRuns = 1000

// pieces of Corefiles; those at the start are drawn more often.
var pieces = []string{
	"\n", "\n", "\n", "\n", " ", " ", " ", " {\n", "\n}\n", "a", "b", " log ", " class", ".",
	"{", "}", "\r\n", "\t", "\r", "import ", "\nimport a.conf\n", "\nimport s\n", "\nimport *.conf\n", "import", "a.conf", "b.conf", "no.conf", "*.conf", "s", "(s)", "\n(s) {\n", "\n(t) {\n", "\nimport t\n",
	",", ", ", ",\n", "#", " # c", "# c\n", "\n# c\n", "\"", "\"", "\"q\"", "\"q r\"", "\"q\nr\"", "\"\"", "\\", "\\\"", "\"}\"", "\"{\"",
	"{$DM_A}", "{$DM_BRACE}", "{$DM_CLOSE}", "{$DM_LINES}", "{$DM_REF}", "{$DM_IMPORT}", "{%DM_A%}", "{$DM_NONE}", "{$", "{%", "}", "%}",
	"\ufeff", "\u00a0", "\u0085", "\xff", "\xc3", "\xa9", "\ufffd", "\v", "\x00",
}

func randomCorefile(random *rand.Rand) []byte {
	var b []byte
	if random.IntN(2) == 0 {
		b = append(b, "a {\n"...)
	}
	for range random.IntN(24) {
		i := random.IntN(len(pieces))
		if random.IntN(2) == 0 {
			i = random.IntN(24)
		}
		b = append(b, pieces[i]...)
	}
	if random.IntN(2) == 0 {
		b = append(b, "\n}\n"...)
	}
	return b
}
