package checks

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// DM3003 is a zone written with capitals.
var DM3003 = &finding.Code{
	ID:       "DM3003",
	Severity: finding.Error,
	Title:    "a zone with capitals is never reached",
	Doc: `A server block is written for a zone with capital letters. Up to CoreDNS 1.14.6 the server keeps the zone as it is
written and compares it with names in lower case: no query reaches the block, and names of the zone are answered by
another block, or REFUSED where there is none. From 1.14.7 letter case does not matter, and the finding is a note.

To mend it, write the zone in lower case:

    example.lan:53 {
        forward . 192.0.2.53
    }`,
}

// corefiles judges the Corefiles of all DNS servers.
var corefiles = &diagnose.Analyzer{
	Name: "corefile",
	Doc:  "Corefiles of DNS servers: what CoreDNS does not load, plugins that are gone, zones that no query reaches, blocks that answer nothing, upstreams, rewrite rules that lose answers",
	Uses: []cluster.Resource{
		cluster.ConfigMaps, cluster.Pods, cluster.Services, cluster.EndpointSlices, cluster.Namespaces, cluster.Nodes, cluster.Texts,
	},
	Codes: []*finding.Code{DM3001, DM3002, DM3003, DM3004, DM3005, DM3018, DM3019, DM3021},
	Run: func(p *diagnose.Pass) {
		// A ConfigMap may be mounted by several servers; its text is judged once for each version that reads it.
		seen := map[string]bool{}
		judged := 0
		var refused []string
		plugins := pluginNames()
		for _, s := range p.Facts().Servers {
			if s.Corefile == nil {
				continue
			}
			key := s.Corefile.Object.String() + " " + s.Corefile.Key + " " + s.Version + " " + string(s.Implementation)
			if seen[key] {
				continue
			}
			seen[key] = true
			c := &corefileCheck{
				Pass: p, server: s, reported: map[string]bool{}, plugins: plugins, retirements: map[string]retired{},
			}
			misplaced := c.misplaced()
			if err := s.Corefile.ExpandErr; err != nil {
				if !misplaced {
					c.refusals()
				}
				if len(c.reported) > 0 {
					judged++
				}
				refused = append(refused, "the Corefile cannot be read: "+err.Error())
				continue
			}
			judged++
			if misplaced || c.emptyCorefile() {
				continue // the blocks are not those that were meant
			}
			for _, b := range s.Corefile.Expanded.Blocks {
				c.retiredParts(b)
				if !c.literalKeys(b) {
					c.silentBlock(b)
				}
				c.upstreams(b)
				c.capitalZones(b)
				c.rewrites(b)
			}
			if unjudged := c.refusals(); unjudged != "" {
				refused = append(refused, unjudged)
			}
		}
		switch {
		case judged == 0 && len(refused) == 0:
			p.Idle()
		case judged == 0:
			p.Skip(strings.Join(refused, "; "))
		case len(refused) > 0:
			p.SkipPart(strings.Join(refused, "; "))
		}
	},
}

// corefileCheck is one Corefile under judgement.
type corefileCheck struct {
	*diagnose.Pass
	server *cluster.Server
	// reported are the places that have a finding: an imported text may stand in several blocks.
	reported map[string]bool
	// plugins are the directives of CoreDNS.
	plugins map[string]bool
	// retirements are the answers of retirement so far.
	retirements map[string]retired
	// index finds blocks by zone; see zones.
	index *zoneIndex
}

// object is what holds a token: the ConfigMap or file of the main text, or that of an import.
func (c *corefileCheck) object(t corefile.Token) finding.Object {
	for _, m := range c.server.Corefile.Mounts {
		if m.Source() == t.File.Name {
			return m.Object
		}
	}
	return c.server.Corefile.Object
}

// say reports a finding about a token, once for each place.
func (c *corefileCheck) say(code *finding.Code, t corefile.Token, f finding.Finding) {
	at := t.Position()
	place := code.ID + " " + at.String()
	if c.reported[place] {
		return
	}
	c.reported[place] = true
	f.Object = c.object(t)
	f.Position = &finding.Position{Source: at.File, Line: at.Line, Col: at.Col}
	if line := strings.TrimSpace(lineOf(t)); line != "" {
		f.Evidence = append([]finding.Evidence{{Label: "line", Text: line, Position: f.Position}}, f.Evidence...)
	}
	if f.Fix != nil {
		f.Fix.Commands = append(f.Fix.Commands, explain(code))
	}
	c.Report(code, f)
}

// maxDiffs is how many findings about a Corefile offer a diff: each reads the whole text.
const maxDiffs = 100

// offersDiff tells whether the next finding may offer one.
func (c *corefileCheck) offersDiff() bool { return len(c.reported) < maxDiffs }

// lineOf is the source line on which a token starts, without what follows 200 bytes of it.
func lineOf(t corefile.Token) string {
	const limit = 200
	src := t.File.Src
	start := strings.LastIndexByte(src[:t.Start], '\n') + 1
	end := len(src)
	if i := strings.IndexByte(src[t.Start:], '\n'); i >= 0 {
		end = t.Start + i
	}
	line := src[start:end]
	if len(line) > limit {
		line = line[:limit] + " …"
	}
	return line
}

// atLeast tells whether the server is known to be at least of a version, or not known to be older. A node cache carries
// a version of its own, which says nothing about the CoreDNS inside.
func (c *corefileCheck) atLeast(major, minor, patch int) bool {
	v, ok := resolve.ParseVersion(c.server.Version)
	return !ok || c.server.Implementation != cluster.CoreDNS || !v.Before(major, minor, patch)
}

// capitalZones reports DM3003, once for each line of keys.
func (c *corefileCheck) capitalZones(b *corefile.Block) {
	var lines [][]corefile.Token
	for _, key := range b.Keys {
		if _, err := corefile.ParseZone(key.Text); err != nil || isNetwork(key.Text) || !hasCapital(afterScheme(key.Text)) {
			continue
		}
		if n := len(lines); n > 0 && lines[n-1][0].File == key.File && lines[n-1][0].Line == key.Line {
			lines[n-1] = append(lines[n-1], key)
		} else {
			lines = append(lines, []corefile.Token{key})
		}
	}
	for _, keys := range lines {
		var words []string
		var edits []corefile.Edit
		for _, key := range keys {
			words = append(words, `"`+key.Text+`"`)
			if edit, err := key.Replace(strings.ToLower(key.Text)); err == nil {
				edits = append(edits, edit)
			}
		}
		subject := enumerate(words, "and", 4) + " is"
		if len(keys) > 1 {
			subject = enumerate(words, "and", 4) + " are"
		}
		f := finding.Finding{
			Message: fmt.Sprintf("%s written with capitals: CoreDNS %s never reaches the block", subject, c.server.Version),
			Fix:     &finding.Fix{Summary: "write zones in lower case"},
		}
		if len(edits) == len(keys) {
			f.Fix.Diff = editDiff(keys[0].File, edits...)
		}
		if c.atLeast(1, 14, 7) {
			f.Severity = finding.Info
			f.Message = subject + " written with capitals: CoreDNS up to 1.14.6 never reaches the block"
		}
		c.say(DM3003, keys[0], f)
	}
}

func hasCapital(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return 'A' <= r && r <= 'Z' })
}

// afterScheme is a key without its transport: case does not matter there to the question at hand.
func afterScheme(key string) string {
	if _, rest, ok := strings.Cut(key, "://"); ok {
		return rest
	}
	return key
}

// isNetwork tells whether a key is a network in CIDR notation, with a port or not. Its reverse zones are made of the
// address and not of its text (plugin/pkg/cidr), so that 2001:DB8::/32 is reached.
func isNetwork(key string) bool {
	text := afterScheme(key)
	if slash, colon := strings.LastIndexByte(text, '/'), strings.LastIndexByte(text, ':'); slash >= 0 && colon > slash {
		text = text[:colon]
	}
	_, err := netip.ParsePrefix(text)
	return err == nil
}

// tokenDiff is the diff that replaces a word of a Corefile; empty where the word has no spelling, or came from a
// variable of the environment.
func tokenDiff(t corefile.Token, value string) string {
	edit, err := t.Replace(value)
	if err != nil {
		return ""
	}
	return editDiff(t.File, edit)
}

// editDiff writes edits as a unified diff without context: one hunk from the first line that changes to the last.
func editDiff(f *corefile.File, edits ...corefile.Edit) string {
	after, err := corefile.Apply([]byte(f.Src), edits)
	if err != nil {
		return ""
	}
	old, changed := strings.SplitAfter(f.Src, "\n"), strings.SplitAfter(string(after), "\n")
	head := 0
	for head < len(old) && head < len(changed) && old[head] == changed[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(changed)-head && old[len(old)-1-tail] == changed[len(changed)-1-tail] {
		tail++
	}
	old, changed = old[head:len(old)-tail], changed[head:len(changed)-tail]
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n@@ -%d,%d +%d,%d @@\n", f.Name, f.Name, head+1, len(old), head+1, len(changed))
	write := func(sign string, lines []string) {
		for _, l := range lines {
			b.WriteString(sign + l)
			if !strings.HasSuffix(l, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	write("-", old)
	write("+", changed)
	return b.String()
}
