package checks

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// The codes about rewrite rules.
var (
	DM3004 = &finding.Code{
		ID: "DM3004", Severity: finding.Error,
		Title: "a rewrite rule loses the answer for glibc",
		Doc: `A rule "rewrite name prefix|suffix|substring|regex" has no answer rule. The answer then carries the rewritten name as its
owner, and not the name that was asked for. glibc drops such an answer ("No address associated with hostname"); musl and
Go take it, so the name resolves in one image and not in another. Rules of type exact are always mapped back. A rule with
"answer value" alone maps the values of records and not their owners: a note, because it may be meant for PTR records.

To mend it, add an answer rule. "answer auto" (from CoreDNS 1.8.4) maps owner names back; with suffix also the targets of
CNAME and SRV:

    rewrite name suffix .corp.example.org .svc.cluster.local answer auto

For regex, give the way back as a second expression:

    rewrite stop {
        name regex (.*)\.corp\.example\.org {1}.svc.cluster.local
        answer name (.*)\.svc\.cluster\.local {1}.corp.example.org
    }`,
	}
	DM3005 = &finding.Code{
		ID: "DM3005", Severity: finding.Error,
		Title: "a regular expression of a rewrite rule matches nothing, or too much",
		Doc: `CoreDNS compares the expression with the name in lower case and with its final dot. An expression that asks for a capital
letter never matches, nor does one that ends in $ without \. in front of it: the rule has no effect, an error. (?i) and
[A-Za-z] do match.

A dot in an expression stands for any character. Where a dot of a name is meant and not escaped, the rule also takes
other names, such as one of another domain that ends in the same letters: a warning, with such a name as evidence.

To mend it, write letters in lower case and dots as \. :

    rewrite name regex (.*)\.corp\.example\.org {1}.svc.cluster.local answer auto`,
	}
)

// longestRegex is maxRegexpLen of plugin/rewrite/name.go: CoreDNS refuses a longer expression.
const longestRegex = 10000

// rewriteRule is one rule of plugin rewrite, with the words that make it.
type rewriteRule struct {
	// words are all words after the directive's name, those of its block included (plugin/rewrite/setup.go).
	words []corefile.Token
	// next is the mode continue.
	next bool
	// kind is name, ttl, rcode …; match is exact, prefix, suffix, substring or regex.
	kind, match string
	from, to    corefile.Token
	// rest is what follows.
	rest []corefile.Token
	// block tells that the rule stands in braces.
	block bool
}

// parseRewrite reads a rewrite directive as newRule and newNameRule of plugin/rewrite do. It says false for rules that
// name nothing to match, and for those that CoreDNS refuses.
func parseRewrite(d *corefile.Directive) (rewriteRule, bool) {
	r := rewriteRule{words: slices.Clone(d.Args)}
	if len(r.words) < 2 {
		for _, line := range d.Body {
			line.Walk(func(l *corefile.Directive) { r.words = append(append(r.words, l.Name), l.Args...) })
		}
		r.block = true
	}
	w := r.words
	if len(w) > 0 {
		switch strings.ToLower(w[0].Text) {
		case "continue":
			r.next, w = true, w[1:]
		case "stop":
			w = w[1:]
		}
	}
	if len(w) < 3 {
		return r, false
	}
	r.kind, w = strings.ToLower(w[0].Text), w[1:]
	switch r.kind {
	case "name", "ttl", "rcode":
	default:
		return r, false
	}
	r.match = strings.ToLower(w[0].Text)
	switch r.match {
	case "exact", "prefix", "suffix", "substring", "regex":
		w = w[1:]
	default:
		r.match = "exact"
	}
	if len(w) < 2 {
		return r, false
	}
	r.from, r.to, r.rest = w[0], w[1], w[2:]
	return r, true
}

// answers are the types of the rule's answer rules (parseAnswerRules of plugin/rewrite): auto, name, value.
func (r rewriteRule) answers() []string {
	var types []string
	for i := 0; i < len(r.rest); i++ {
		switch word := r.rest[i].Text; word {
		case "auto":
			types = append(types, word)
		case "name", "value":
			types = append(types, word)
			i += 2
		}
	}
	return types
}

// mapsOwner tells whether the rule maps the owner of the answer back. Answer rules of type value do not.
func (r rewriteRule) mapsOwner() bool {
	return slices.ContainsFunc(r.answers(), func(a string) bool { return a != "value" })
}

// namesOwner tells whether the rule says itself what the owner becomes. One of type auto maps back to the name that the
// rule was given, which an earlier rule may have made.
func (r rewriteRule) namesOwner() bool { return slices.Contains(r.answers(), "name") }

// rewrites reports DM3004 and DM3005 for the rules of a block.
func (c *corefileCheck) rewrites(b *corefile.Block) {
	var rules []rewriteRule
	for _, d := range b.Named("rewrite") {
		if r, ok := parseRewrite(d); ok {
			rules = append(rules, r)
		}
	}
	for i, r := range rules {
		if c.regex(b, r) || r.refused() {
			continue
		}
		if r.kind != "name" || r.match == "exact" || r.mapsOwner() || r.changesNothing() {
			continue
		}
		if r.next && slices.ContainsFunc(rules[i+1:], rewriteRule.namesOwner) {
			continue // a later rule may map the whole chain back
		}
		fix := &finding.Fix{Summary: "add an answer rule that maps the name back"}
		switch {
		case r.match == "regex":
		case !c.atLeast(1, 8, 4):
			// Before, only rules of type regex take an answer rule, and CoreDNS does not load others.
			fix.Summary = "write it as a regex with an answer rule, which CoreDNS " + c.server.Version + " takes"
		case !r.block && len(r.rest) == 0:
			fix.Summary = "add answer auto"
			fix.Diff = appendDiff(r.to, " answer auto")
		}
		f := finding.Finding{
			Message: fmt.Sprintf("rewrite %s \"%s\" has no answer rule: glibc drops the answer, because it bears the rewritten name",
				r.match, r.from.Text),
			Fix: fix,
		}
		if len(r.answers()) > 0 {
			// Whoever maps the values alone may have records in mind whose owner nobody compares, such as PTR.
			f.Severity = finding.Info
			f.Message = fmt.Sprintf("rewrite %s \"%s\" maps values back and not the owner: glibc drops an answer with addresses",
				r.match, r.from.Text)
		}
		c.say(DM3004, r.from, f)
	}
}

// refused tells whether CoreDNS does not load the expression.
func (r rewriteRule) refused() bool {
	if r.match != "regex" {
		return false
	}
	_, err := syntax.Parse(r.from.Text, syntax.Perl)
	return err != nil || len(r.from.Text) > longestRegex
}

// appendDiff is the diff that writes text behind a word; empty where the word does not stand in the file as it is read.
func appendDiff(t corefile.Token, text string) string {
	if t.File == nil || t.Source() != t.Text {
		return ""
	}
	return editDiff(t.File, corefile.Edit{Start: t.End, End: t.End, New: text})
}

// changesNothing tells whether no host name changes by the rule. From and to of prefix and substring get a final dot
// (newNameRule calls Normalize), so "prefix old-" asks for a first label "old-", which no host name has.
func (r rewriteRule) changesNothing() bool {
	if r.match == "regex" {
		return false
	}
	from, err := resolve.Absolute(strings.TrimPrefix(r.from.Text, "."))
	if err != nil {
		return true
	}
	to, err := resolve.Absolute(strings.TrimPrefix(r.to.Text, "."))
	if err == nil && from == to && strings.HasPrefix(r.from.Text, ".") == strings.HasPrefix(r.to.Text, ".") {
		return true
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(from, "."), ".") {
		if strings.HasSuffix(label, "-") || r.match == "prefix" && strings.HasPrefix(label, "-") {
			return true
		}
	}
	return false
}

// regex reports DM3005 and tells whether the rule can match nothing.
func (c *corefileCheck) regex(b *corefile.Block, r rewriteRule) bool {
	if r.match != "regex" {
		return false
	}
	if r.refused() {
		return false
	}
	tree, err := syntax.Parse(r.from.Text, syntax.Perl)
	if err != nil {
		return false
	}
	if !matchesLower(tree) {
		c.say(DM3005, r.from, finding.Finding{
			Message: fmt.Sprintf("\"%s\" asks for a capital letter: names are compared in lower case, so the rule never matches", r.from.Text),
			Fix:     &finding.Fix{Summary: "write the letters in lower case, or put (?i) in front", Diff: tokenDiff(r.from, "(?i)"+r.from.Text)},
		})
		return true
	}
	if i := len(tree.Sub) - 1; tree.Op == syntax.OpConcat && i > 0 && tree.Sub[i].Op == syntax.OpEndText && tree.Sub[i-1].Op == syntax.OpLiteral &&
		!strings.HasSuffix(string(tree.Sub[i-1].Rune), ".") {
		fix := &finding.Fix{Summary: `write \.$ at its end`}
		if before, ok := strings.CutSuffix(r.from.Text, "$"); ok {
			fix.Diff = tokenDiff(r.from, before+`\.$`)
		}
		c.say(DM3005, r.from, finding.Finding{
			Message: fmt.Sprintf("\"%s\" ends before the final dot: names are compared with it, so the rule never matches", r.from.Text),
			Fix:     fix,
		})
		return true
	}
	if r.kind != "name" {
		return false
	}
	wrong, escaped := wronglyTaken(r.from.Text, func(name string) bool { return inBlock(b, name) })
	if wrong == "" {
		return false
	}
	c.say(DM3005, r.from, finding.Finding{
		Severity: finding.Warning,
		Message:  fmt.Sprintf("\"%s\" has a dot that matches any character: it also takes %s", r.from.Text, strings.TrimSuffix(wrong, ".")),
		Fix:      &finding.Fix{Summary: `write \. for the dot`, Diff: tokenDiff(r.from, escaped)},
	})
	return false
}

// matchesLower tells whether an expression can match a text without capital letters.
func matchesLower(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpNoMatch:
		return false
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return true
		}
		return !slices.ContainsFunc(re.Rune, func(r rune) bool { return 'A' <= r && r <= 'Z' })
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if re.Rune[i] < 'A' || re.Rune[i+1] > 'Z' {
				return true
			}
		}
		return false
	case syntax.OpCapture, syntax.OpPlus:
		return matchesLower(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || matchesLower(re.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(s *syntax.Regexp) bool { return !matchesLower(s) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, matchesLower)
	}
	return true
}

// wronglyTaken looks for a name that arrives in the block and that the expression takes because a dot between the labels
// of a domain is not escaped. It returns the name, absolute, and the expression with all such dots escaped; "" where there
// is none.
func wronglyTaken(text string, arrives func(name string) bool) (name, escaped string) {
	loose, err := regexp.Compile(text)
	if err != nil {
		return "", ""
	}
	escaped = text
	for _, dot := range slices.Backward(bareDots(text)) {
		escaped = escaped[:dot] + `\.` + escaped[dot+1:]
	}
	tree, err := syntax.Parse(escaped, syntax.Perl)
	if err != nil {
		return "", ""
	}
	strict, err := regexp.Compile(escaped)
	if err != nil {
		return "", ""
	}
	// The sample of the strict expression has a dot where the loose one takes any character: put one there.
	good := sample(tree)
	for i := range len(good) {
		if good[i] != '.' {
			continue
		}
		bad := good[:i] + "x" + good[i+1:]
		if !strings.HasSuffix(bad, ".") {
			bad += "."
		}
		if abs, err := resolve.Absolute(bad); err == nil && abs == bad && arrives(bad) && loose.MatchString(bad) && !strict.MatchString(bad) {
			return bad, escaped
		}
	}
	return "", ""
}

// bareDots are the offsets of dots that stand for one character and have a letter or digit of a name behind or before
// them: "corp.example", ").example", "org.".
func bareDots(text string) []int {
	var dots []int
	inClass := false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			inClass = true
		case ']':
			inClass = false
		case '.':
			quantified := i+1 < len(text) && strings.IndexByte("*+?{", text[i+1]) >= 0
			before := i > 0 && (isNameByte(text[i-1]) || text[i-1] == ')')
			after := i+1 == len(text) || isNameByte(text[i+1]) || text[i+1] == '$' || text[i+1] == '('
			if !inClass && !quantified && before && after && (isNameByte(text[i-1]) || i+1 < len(text) && isNameByte(text[i+1])) {
				dots = append(dots, i)
			}
		}
	}
	return dots
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// sample returns a short text that the expression matches, without capitals where it can.
func sample(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		return strings.ToLower(string(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "a"
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for _, want := range []rune{'a', '0', '-'} {
				if re.Rune[i] <= want && want <= re.Rune[i+1] {
					return string(want)
				}
			}
		}
		if len(re.Rune) > 0 {
			return string(re.Rune[0])
		}
	case syntax.OpCapture, syntax.OpPlus:
		return sample(re.Sub[0])
	case syntax.OpStar, syntax.OpQuest:
		if re.Sub[0].Op == syntax.OpAnyChar || re.Sub[0].Op == syntax.OpAnyCharNotNL {
			return "a"
		}
		return sample(re.Sub[0])
	case syntax.OpRepeat:
		return strings.Repeat(sample(re.Sub[0]), max(re.Min, 1))
	case syntax.OpConcat:
		var b strings.Builder
		for _, s := range re.Sub {
			b.WriteString(sample(s))
		}
		return b.String()
	case syntax.OpAlternate:
		return sample(re.Sub[0])
	}
	return ""
}

// inBlock tells whether a query for the name can arrive in the block.
func inBlock(b *corefile.Block, name string) bool {
	for _, key := range b.Keys {
		zone, err := corefile.ParseZone(key.Text)
		if err != nil {
			continue
		}
		for _, z := range zone.Names {
			if resolve.Under(name, z) {
				return true
			}
		}
	}
	return false
}
