package checks

import (
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// rewriteOf parses the first rewrite directive of a block with the given body.
func rewriteOf(t testing.TB, body string) (rewriteRule, *corefile.Block, bool) {
	t.Helper()
	file, err := corefile.Parse("Corefile", []byte(".:53 {\n"+body+"\n}\n"))
	if err != nil || len(file.Blocks) == 0 {
		return rewriteRule{}, nil, false
	}
	b := file.Blocks[0]
	if len(b.Named("rewrite")) == 0 {
		return rewriteRule{}, nil, false
	}
	r, ok := parseRewrite(b.Named("rewrite")[0])
	return r, b, ok
}

func TestParseRewrite(t *testing.T) {
	for _, test := range []struct {
		body                  string
		ok                    bool
		kind, match, from, to string
		next, answer, block   bool
	}{
		{body: "rewrite name a.test b.test", ok: true, kind: "name", match: "exact", from: "a.test", to: "b.test"},
		{body: "rewrite name exact a.test b.test", ok: true, kind: "name", match: "exact", from: "a.test", to: "b.test"},
		{body: "rewrite continue name suffix a b answer auto", ok: true, kind: "name", match: "suffix", from: "a", to: "b", next: true, answer: true},
		{body: "rewrite STOP NAME REGEX a b", ok: true, kind: "name", match: "regex", from: "a", to: "b"},
		{body: "rewrite {\nname regex a b\nanswer name b a\nanswer value b a\n}", ok: true, kind: "name", match: "regex", from: "a", to: "b", answer: true, block: true},
		{body: "rewrite name regex a b answer value b a", ok: true, kind: "name", match: "regex", from: "a", to: "b"},
		{body: "rewrite name regex a b answer value auto name name b a", ok: true, kind: "name", match: "regex", from: "a", to: "b", answer: true},
		{body: "rewrite name regex a b metadata answer auto", ok: true, kind: "name", match: "regex", from: "a", to: "b", answer: true},
		{body: "rewrite continue {\nname prefix a b\n}", ok: true, kind: "name", match: "prefix", from: "a", to: "b", next: true, block: true},
		{body: "rewrite ttl regex a 30", ok: true, kind: "ttl", match: "regex", from: "a", to: "30"},
		{body: "rewrite type ANY HINFO"},
		{body: "rewrite class CH IN"},
		{body: "rewrite edns0 local set 0xffee 0x61"},
		{body: "rewrite name a"},
		{body: "rewrite"},
		{body: "rewrite {\n}"},
	} {
		r, _, ok := rewriteOf(t, test.body)
		if ok != test.ok {
			t.Errorf("%q: read %t, want %t", test.body, ok, test.ok)
			continue
		}
		if !ok {
			continue
		}
		if r.kind != test.kind || r.match != test.match || r.from.Text != test.from || r.to.Text != test.to ||
			r.next != test.next || r.mapsOwner() != test.answer || r.block != test.block {
			t.Errorf("%q: %s %s %q %q, next %t, answer %t, block %t", test.body, r.kind, r.match, r.from.Text, r.to.Text, r.next, r.mapsOwner(), r.block)
		}
	}
}

func TestMatchesLower(t *testing.T) {
	for expr, want := range map[string]bool{
		``: true, `a`: true, `A`: false, `(?i)A`: true, `a(?i:B)c`: true, `[A-Z]`: false, `[A-Za-z]`: true, `[^a]`: true,
		`[^A-Z]`: true, `A|b`: true, `A|B`: false, `(A)?b`: true, `(A)+b`: false, `A*`: true, `A{0,3}`: true, `A{2}`: false,
		`.*Corp`: false, `(.*)\.corp`: true, `\S`: true, `\D`: true, `\pL`: true, `[[:upper:]]`: false, `[[:alpha:]]`: true,
		`^$`: true, `a^`: true, `x(A|b)(c|D)`: true, `x(A|B)(c|D)`: false, `Ü`: true,
	} {
		tree, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := matchesLower(tree); got != want {
			t.Errorf("%q: %t, want %t", expr, got, want)
		}
	}
}

func TestBareDots(t *testing.T) {
	for expr, want := range map[string]string{
		`(.*)\.corp.example.org`: `(.*)\.corp\.example\.org`,
		`(.*).corp\.test`:        `(.*)\.corp\.test`,
		`a.b`:                    `a\.b`,
		`a.*b`:                   `a.*b`,
		`a.+b`:                   `a.+b`,
		`a.?b`:                   `a.?b`,
		`a.{2}b`:                 `a.{2}b`,
		`[a.b]c`:                 `[a.b]c`,
		`.`:                      `.`,
		`..`:                     `..`,
		`a..b`:                   `a..b`,
		`corp.test.$`:            `corp\.test\.$`,
	} {
		got := expr
		dots := bareDots(expr)
		for i := len(dots) - 1; i >= 0; i-- {
			got = got[:dots[i]] + `\.` + got[dots[i]+1:]
		}
		if got != want {
			t.Errorf("%q: %q, want %q", expr, got, want)
		}
	}
}

// lowerText is a text of the letters that names hold, or of those that stand in the expression, without capitals.
func lowerText(r *rand.Rand, expr string) string {
	const letters = "abcxyz019-_."
	expr = strings.ToLower(expr)
	var b strings.Builder
	for range r.IntN(12) {
		if n := r.IntN(2 * len(letters)); n < len(letters) || expr == "" {
			b.WriteByte(letters[n%len(letters)])
		} else {
			b.WriteByte(expr[r.IntN(len(expr))])
		}
	}
	return b.String()
}

// FuzzRewriteRules reads any text as the rules of a block. Nothing may panic, and what is said of an expression must
// agree with package regexp.
func FuzzRewriteRules(f *testing.F) {
	for _, body := range []string{
		"rewrite name suffix .corp.test .svc.cluster.local",
		"rewrite stop {\n name regex (.*)\\.Corp\\.test {1}.svc.cluster.local\n answer name (.*) {1}\n}",
		"rewrite name regex (?i)(A|b.)*.corp.test x answer auto",
		"rewrite continue ttl regex [A-Z]{2,3}.corp.example.org 30-",
		"rewrite name regex (.+)-(x|Y).a.b.c. {2}.{1}",
		"rewrite name regex \\pL+[[:upper:]].test x",
		"rewrite name regex \"a b.c\" x", "rewrite {\n}", "rewrite name regex [ x", "rewrite name prefix - -",
	} {
		f.Add(body, uint64(1))
	}
	f.Fuzz(func(t *testing.T, body string, seed uint64) {
		if len(body) > 1<<12 {
			return
		}
		r, b, ok := rewriteOf(t, body)
		if !ok {
			return
		}
		r.changesNothing()
		if r.match == "regex" && !r.refused() {
			checkExpression(t, b, r.from.Text, seed)
		}
		s := &cluster.Snapshot{Partial: true, Texts: []*cluster.Text{{Kind: cluster.TextCorefile, Name: "Corefile", Data: ".:53 {\n" + body + "\n}\n"}}}
		for _, g := range diagnose.Run(s, []*diagnose.Analyzer{corefiles}, diagnose.Options{}).Findings {
			if g.Position == nil || g.Position.Line < 1 || g.Fix == nil {
				t.Errorf("no place or no fix: %s", describe(g))
			}
		}
	})
}

// checkExpression compares what is said of an expression with what it matches.
func checkExpression(t *testing.T, b *corefile.Block, text string, seed uint64) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return
	}
	if !matchesLower(tree) {
		r := rand.New(rand.NewPCG(seed, 1))
		for range 200 {
			if s := lowerText(r, text); re.MatchString(s) {
				t.Fatalf("%q matches %q, and is said to match nothing in lower case", text, s)
			}
		}
		return
	}
	wrong, escaped := wronglyTaken(text, func(name string) bool { return inBlock(b, name) })
	if wrong == "" {
		return
	}
	strict, err := regexp.Compile(escaped)
	if err != nil || !re.MatchString(wrong) || strict.MatchString(wrong) {
		t.Fatalf("%q takes %q %t, %q does %t: %v", text, wrong, re.MatchString(wrong), escaped, err == nil && strict.MatchString(wrong), err)
	}
	if abs, err := resolve.Absolute(wrong); err != nil || abs != wrong {
		t.Fatalf("%q is no absolute name: %v", wrong, err)
	}
}
