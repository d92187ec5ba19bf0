package cluster

import (
	"net/netip"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// templateRule is one template of plugin/template, as far as it decides what a query for an address gets.
type templateRule struct {
	directive *corefile.Directive
	zones     []string
	class     string
	qtype     string
	// patterns are the regular expressions; nil entries stand for those that cannot be tried.
	patterns []*regexp.Regexp
	texts    []string
	answers  []string
	code     resolve.Rcode
	// strange tells of a code that resolvers do not tell apart here.
	strange bool
	fall    []string
}

func newTemplateRule(d *corefile.Directive, b *corefile.Block) *templateRule {
	t := &templateRule{directive: d, fall: fallZones(d)}
	args := d.Values()
	if len(args) > 0 {
		t.class = strings.ToUpper(args[0])
	}
	if len(args) > 1 {
		t.qtype = strings.ToUpper(args[1])
	}
	t.zones = originsOf(d.Args[min(2, len(d.Args)):], b)
	for _, line := range d.Body {
		switch line.Name.Text {
		case "match":
			for _, text := range line.Values() {
				t.texts = append(t.texts, text)
				t.patterns = append(t.patterns, compile(text))
			}
		case "answer":
			t.answers = append(t.answers, line.Values()...)
		case "rcode":
			if len(line.Args) > 0 {
				t.code, t.strange = parseRcode(line.Args[0].Text)
			}
		}
	}
	return t
}

// parseRcode reads a name of dns.StringToRcode.
func parseRcode(text string) (code resolve.Rcode, strange bool) {
	for _, c := range []resolve.Rcode{resolve.NoError, resolve.FormErr, resolve.ServFail, resolve.NXDomain, resolve.NotImp, resolve.Refused} {
		if c.String() == text {
			return c, false
		}
	}
	return resolve.NoError, true
}

// outcome is what a rule makes of a query.
type outcome int

const (
	passes  outcome = iota // on to the next rule
	ends                   // SERVFAIL
	answers                // this rule answers
	unclear                // it cannot be told
)

// match follows template.match and what ServeDNS makes of it.
func (t *templateRule) match(q *query) outcome {
	qtype := "A"
	if q.ipv6 {
		qtype = "AAAA"
	}
	if !inZones(q.name, t.zones) || t.class != "ANY" && t.class != "IN" || t.qtype != "ANY" && t.qtype != qtype {
		return passes
	}
	for _, p := range t.patterns {
		switch {
		case p == nil:
			return unclear
		case p.MatchString(q.name):
			return answers
		}
	}
	switch {
	case len(t.patterns) == 0:
		return answers
	case inZones(q.name, t.fall):
		return passes
	}
	return ends
}

// templateStage runs the rules of a block in order. All of them are one plugin.
func (c *chain) templateStage(rules []*templateRule) stage {
	return func(q *query) (verdict, bool) {
		for _, t := range rules {
			switch t.match(q) {
			case ends:
				if c.version.Before(1, 9, 3) {
					// coredns#5180: up to then nothing was written to the client.
					return rcode(resolve.NoReply, "a template matches the zone and not the name, and does not pass it on (no fallthrough)"), true
				}
				return rcode(resolve.ServFail, "a template matches the zone and not the name, and does not pass it on (no fallthrough)"), true
			case unclear:
				return unknown("a template may match the name"), true
			case answers:
				return c.templateAnswer(t, q), true
			}
		}
		return verdict{}, false
	}
}

// templateAnswer makes the answer of a rule that matches.
func (c *chain) templateAnswer(t *templateRule, q *query) verdict {
	const note = "a template answers the name"
	if t.strange {
		return unknown(note)
	}
	v := verdict{known: true, note: note, reply: resolve.Reply{Rcode: t.code}}
	if t.code != resolve.NoError {
		return v
	}
	var records []record
	for _, text := range t.answers {
		r, ok := t.record(text, q.name)
		if !ok {
			return unknown("a template answers the name with a record that is not known")
		}
		records = append(records, r)
	}
	owner := q.name
	for range maxChase {
		target := ""
		for _, r := range records {
			switch {
			case r.owner != owner:
			case r.kind == "CNAME":
				target = r.data
			case r.kind == "A" && !q.ipv6, r.kind == "AAAA" && q.ipv6:
				v.reply.Records = resolve.Address
				if a, err := netip.ParseAddr(r.data); err == nil {
					v.addresses = append(v.addresses, a)
				}
			}
		}
		if v.reply.Records == resolve.Address || target == "" {
			break
		}
		v.reply.Records = resolve.AliasAlone
		owner = target
	}
	if v.reply.Records == resolve.AliasAlone {
		// The server looks the target up itself.
		a := c.answer(owner, q.depth+1)
		reply := a.A
		if q.ipv6 {
			reply = a.AAAA
		}
		if !a.Known {
			v.known = false
		} else if reply.Rcode == resolve.NoError && reply.Records == resolve.Address {
			v.reply.Records = resolve.Address
		}
	}
	return v
}

// record is one resource record of an answer. Owner, and data of a CNAME, are absolute.
type record struct{ owner, kind, data string }

// record reads a record as dns.NewRR does: owner, then TTL and class in any order, type, data. Of the actions of
// text/template it knows .Name and .Zone; another one in the owner or in the target of an alias, or one that decides
// what the text is, makes it say false. An address may be anything.
func (t *templateRule) record(text, name string) (record, bool) {
	const hole = "{{}}"
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "{{")
		b.WriteString(before)
		if !ok {
			break
		}
		action, after, ok := strings.Cut(rest, "}}")
		if !ok {
			return record{}, false
		}
		switch strings.Trim(action, " \t\r\n-") {
		case ".Name":
			b.WriteString(name)
		case ".Zone":
			b.WriteString(longest(name, t.zones))
		default:
			if word, _, _ := strings.Cut(strings.Trim(action, " \t\r\n-"), " "); slices.Contains([]string{
				"if", "else", "end", "range", "with", "define", "block", "template", "break", "continue",
			}, word) {
				return record{}, false
			}
			b.WriteString(hole)
		}
		text = after
	}
	words := strings.Fields(b.String())
	if len(words) < 3 || strings.Contains(words[0], hole) {
		return record{}, false
	}
	owner, err := resolve.Absolute(words[0])
	if err != nil {
		return record{}, false
	}
	for i, w := range words[1 : len(words)-1] {
		switch kind := strings.ToUpper(w); {
		case strings.Contains(w, hole):
			return record{}, false
		case kind == "IN" || isTTL(w):
		case kind == "CNAME":
			target, err := resolve.Absolute(words[i+2])
			return record{owner, kind, target}, err == nil
		default:
			return record{owner, kind, words[i+2]}, true
		}
	}
	return record{}, false
}

// isTTL tells whether a word is a time to live: digits, with the units of zone files.
func isTTL(w string) bool {
	return w[0] >= '0' && w[0] <= '9' && strings.Trim(strings.ToLower(w), "0123456789smhdw") == ""
}

func longest(name string, zones []string) string {
	best := ""
	for _, z := range zones {
		if resolve.Under(name, z) && len(z) > len(best) {
			best = z
		}
	}
	return best
}

// candidates are names that the rule seems to answer by itself: its zones, and what its patterns spell out.
func (t *templateRule) candidates() []knownCandidate {
	var list []knownCandidate
	if len(t.texts) == 0 {
		for _, z := range t.zones {
			if z != "." {
				list = append(list, knownCandidate{z, t.directive.Position()})
			}
		}
	}
	for _, text := range t.texts {
		if name, err := resolve.Absolute(literal(text)); err == nil {
			list = append(list, knownCandidate{name, t.directive.Position()})
		}
	}
	return list
}

// literal returns the one text that an anchored pattern matches, such as "a.example.test." for
// ^a[.]example\.test\.$; "" if there is none.
func literal(pattern string) string {
	if len(pattern) > maxPattern {
		return ""
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	parts := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		parts = re.Sub
	}
	if len(parts) < 3 || parts[0].Op != syntax.OpBeginText || parts[len(parts)-1].Op != syntax.OpEndText {
		return ""
	}
	var b strings.Builder
	for _, p := range parts[1 : len(parts)-1] {
		if p.Op != syntax.OpLiteral {
			return ""
		}
		b.WriteString(string(p.Rune))
	}
	return b.String()
}
