package corefile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScan(t *testing.T) {
	type token struct {
		Kind Kind
		Text string
		Src  string
	}
	for _, test := range []struct {
		name, src string
		want      []token
	}{
		{"comment inside a word ends at the next blank", "log a#b c", []token{
			{KindWord, "log", "log"},
			{KindSpace, " ", " "},
			{KindWord, "a", "a"},
			{KindComment, "#b", "#b"},
			{KindSpace, " ", " "},
			{KindWord, "c", "c"},
		}},
		{"comment behind a quoted word ends at the line", "\"a\"#b c\nd", []token{
			{KindWord, "a", `"a"`},
			{KindComment, "#b c", "#b c"},
			{KindSpace, "\n", "\n"},
			{KindWord, "d", "d"},
		}},
		{"closing quote ends a word", `"a""b"c`, []token{
			{KindWord, "a", `"a"`},
			{KindWord, "b", `"b"`},
			{KindWord, "c", "c"},
		}},
		{"quote inside a word is a letter", `a"b" c`, []token{
			{KindWord, `a"b"`, `a"b"`},
			{KindSpace, " ", " "},
			{KindWord, "c", "c"},
		}},
		{"only quotation marks are escaped", `"a\"b\c\\"`, []token{{KindWord, `a"b\c\\`, `"a\"b\c\\"`}}},
		{"no escapes outside of quotes", `a\"b`, []token{{KindWord, `a\"b`, `a\"b`}}},
		{"empty word", `""`, []token{{KindWord, "", `""`}}},
		{"carriage returns inside a word vanish", "a\rb\r\n", []token{
			{KindWord, "ab", "a\rb"},
			{KindSpace, "\r\n", "\r\n"},
		}},
		{"carriage returns in quotes stay", "\"a\r\nb\"", []token{{KindWord, "a\r\nb", "\"a\r\nb\""}}},
		{"byte order mark", "\ufeffa \ufeffb", []token{
			{KindBOM, "\ufeff", "\ufeff"},
			{KindWord, "a", "a"},
			{KindSpace, " ", " "},
			{KindWord, "\ufeffb", "\ufeffb"},
		}},
		{"unclosed quotes", "\"a\nb", []token{{KindWord, "a\nb", "\"a\nb"}}},
		{"lone quotation mark", `a "`, []token{
			{KindWord, "a", "a"},
			{KindSpace, " ", " "},
			{KindJunk, `"`, `"`},
		}},
		{"invalid UTF-8", "\xff\xfe", []token{{KindWord, "\ufffd\ufffd", "\xff\xfe"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, _ := Parse("", []byte(test.src))
			var got []token
			for _, tok := range f.Tokens {
				got = append(got, token{tok.Kind, tok.Text, tok.Source()})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("tokens of %q (-want +got):\n%s", test.src, diff)
			}
			checkLexer(t, []byte(test.src))
		})
	}
}

// dump writes a tree in one line: keys, then the body in parentheses.
func dump(f *File) string {
	var parts []string
	for _, b := range f.Blocks {
		parts = append(parts, dumpBlock(b))
	}
	for _, b := range f.Snippets {
		parts = append(parts, "snippet "+dumpBlock(b))
	}
	for _, d := range f.Imports {
		parts = append(parts, dumpDirective(d))
	}
	return strings.Join(parts, "; ")
}

func dumpBlock(b *Block) string {
	var keys []string
	for _, k := range b.Keys {
		keys = append(keys, k.Text)
	}
	for _, d := range b.KeyImports {
		keys = append(keys, dumpDirective(d))
	}
	brackets := "()"
	switch {
	case b.Open == nil:
		brackets = "<>"
	case b.Close == nil:
		brackets = "(!"
	}
	return strings.Join(keys, ",") + brackets[:1] + dumpBody(b.Body) + brackets[1:]
}

func dumpBody(body []*Directive) string {
	var parts []string
	for _, d := range body {
		parts = append(parts, dumpDirective(d))
	}
	return strings.Join(parts, "; ")
}

func dumpDirective(d *Directive) string {
	s := d.Name.Text
	for _, v := range d.Values() {
		s += " " + v
	}
	if d.Open != nil {
		s += "(" + dumpBody(d.Body) + ")"
	}
	for _, t := range d.Tail {
		s += " !" + t.Text
	}
	return s
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ name, src, want string }{
		{"keys by blanks", "a b:53 {\nlog\n}", "a,b:53(log)"},
		{"keys by commas and lines", "a, b,\nc\n{\n}", "a,b,c()"},
		{"empty key is skipped", "\"\" a {\n}", "a()"},
		{"no braces", ".\nerrors\nlog x", ".<errors; log x>"},
		{"keys only", "a b", "a,b<>"},
		{"brace on the next line", ".\n{\nlog\n}", ".(log)"},
		{"brace of a directive on the next line", ". {\nlog\n{\nclass all\n}\n}", ".(log(class all))"},
		{"next block on the same line", ". {\n} b {\n}", ".(); b()"},
		{"three levels", ". {\na {\nb x {\nc\n}\nd\n}\n}", ".(a(b x(c); d))"},
		{"words behind a closing brace", ". {\nlog {\n} x y\n}", ".(log() !x !y)"},
		{"brace without a name", ". {\na {\n{\nb\n}\n}\n}", ".(a((b)))"},
		{"closing brace missing, the last directive has one", ". {\nlog {\n}\n", ".(log()!"},
		{"stray brace ends a block without braces", ".\nlog\n}\nb {\n}", ".<log>; b()"},
		{"snippet and imports", "(s) {\nlog\n}\n. {\nimport s\n}\nimport *.conf", ".(import s); snippet (s)(log); import *.conf"},
		{"snippet of server blocks", "(s) {\n. {\nlog\n}\n}", "snippet (s)(.(log))"},
		{"import among keys", "a,\nimport zones {\n}", ""},
		{"import of keys", "a,\nimport zones\n{\nlog\n}", "a,import zones(log)"},
		{"import inside a directive", ". {\nlog {\nimport x\nclass all\n}\n}", ".(log(import x; class all))"},
		{"block without keys", "{\nlog\n}", "(log)"},
		{"reference to the environment", "{$A}:53, {%B%} {\n}", "{$A}:53,{%B%}()"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := Parse("Corefile", []byte(test.src))
			if test.want == "" {
				if err == nil {
					t.Errorf("accepted as %s", dump(f))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := dump(f); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, test := range []struct{ src, want string }{
		{". {\n  errors\n", "c:2:3: unexpected end of file after \"errors\", expecting \"}\" to close the block of line 1"},
		{". {\n  log {\n", "c:2:7: unexpected end of file, the brace of line 2 is not closed"},
		{". { errors }", "c:1:12: unexpected \"}\", no block of \"errors\" is open; a closing brace stands on its own line"},
		{"a,\r\n{\r\n}", "c:2:1: unexpected \"{\", expecting another key after the comma"},
		{"a,", "c:1:1: unexpected end of file, expecting another key after the comma"},
		{". {\n\timport\n}", "c:2:2: import without an argument, expecting a file, a glob or a snippet"},
		{". {\n\timport a b\n}", "c:2:11: unexpected \"b\", import takes one argument only"},
		{"import \"\"", "c:1:8: import of an empty name"},
		{"(s)\nlog", "c:2:1: unexpected \"log\", expecting \"{\" after the name of a snippet"},
		{"(s) {\nlog", "c:2:1: unexpected end of file, expecting \"}\" to close the snippet of line 1"},
		{"(s) {\n}\n(s) {\n}", "c:4:1: snippet \"s\" is defined a second time"},
		{"(s) {\n import s\n}", "c:2:2: snippet \"s\" imports itself"},
		{"ü ü,", "c:1:4: unexpected end of file, expecting another key after the comma"},
		{". {\nlog " + strings.Repeat("{\n", MaxDepth+1), fmt.Sprintf("c:%d:1: braces nest more than %d deep", MaxDepth+2, MaxDepth)},
		{strings.Repeat("#", MaxSize+1), fmt.Sprintf("c:1:1: file has %d bytes, more than %d are not read", MaxSize+1, MaxSize)},
	} {
		f, err := Parse("c", []byte(test.src))
		if err == nil || err.Error() != test.want {
			t.Errorf("%.40q:\ngot  %v\nwant %s", test.src, err, test.want)
		}
		checkCover(t, f, []byte(test.src))
	}

	// What is in front of the fault is there.
	f, err := Parse("c", []byte("a {\nlog\n}\nb {\ncache {\nx\n"))
	if got, want := dump(f), "a(log); b(cache(x)!"; err == nil || got != want {
		t.Errorf("got %s, %v, want %s and an error", got, err, want)
	}
}

func TestParseBody(t *testing.T) {
	f, err := ParseBody("log.override", []byte("log\nerrors {\n  x\n}\nimport y\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := dumpBody(f.Body), "log; errors(x); import y"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	_, err = ParseBody("log.override", []byte("log\n}\n"))
	if want := `log.override:2:1: unexpected "}", no block is open`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFixturesParse(t *testing.T) {
	for name, src := range fixtures(t) {
		if _, err := Parse(name, src); err != nil {
			t.Error(err)
		}
		checkRoundTrip(t, src)
	}
}

func TestComments(t *testing.T) {
	const src = `# head

# block 1
# block 2
. { # open
  # log 1
  log { # log 2
    # class
    class all # all
    # body
  } # log 3

  # apart

  cache a#b c # cache
} # close
# last
`
	f, err := Parse("", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	b := f.Blocks[0]
	log := b.Body[0]
	texts := func(tokens []Token) string {
		var s []string
		for _, t := range tokens {
			s = append(s, t.Text)
		}
		return strings.Join(s, " ")
	}
	for _, test := range []struct {
		what      string
		got, want string
	}{
		{"lead of block", texts(b.Lead()), "# block 1 # block 2"},
		{"trail of block", texts(b.Trail()), "# open # close"},
		{"lead of log", texts(log.Lead()), "# log 1"},
		{"trail of log", texts(log.Trail()), "# log 2 # log 3"},
		{"lead of class", texts(log.Body[0].Lead()), "# class"},
		{"trail of class", texts(log.Body[0].Trail()), "# all"},
		{"lead of cache", texts(b.Body[1].Lead()), ""},
		{"trail of cache", texts(b.Body[1].Trail()), "# cache"},
	} {
		if test.got != test.want {
			t.Errorf("%s is %q, want %q", test.what, test.got, test.want)
		}
	}
}

func TestUnclosed(t *testing.T) {
	for src, want := range map[string]bool{`. "a`: true, `. "`: true, `. "a"`: false, "": false} {
		f, err := Parse("", []byte(src))
		if _, got := f.Unclosed(); got != want || err != nil {
			t.Errorf("%q: %v, %v", src, got, err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	unit := "example.org, example.test:53 {\n    errors # comment\n    forward . 192.0.2.1 192.0.2.2 {\n        policy sequential\n    }\n    template ANY ANY {\n        answer \"{{ .Name }} 60 IN A 192.0.2.1\"\n    }\n}\n"
	for _, size := range []int{200 << 10, 2 << 20} {
		src := []byte(strings.Repeat(unit, size/len(unit)))
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse("", src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
