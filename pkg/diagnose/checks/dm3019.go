package checks

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/rehearse"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// DM3019 is text of a Corefile that stands where it means something else.
var DM3019 = &finding.Code{
	ID: "DM3019", Severity: finding.Error,
	Title: "a key is no zone, the Corefile is empty, or a line stands in the wrong file",
	Doc: `CoreDNS takes every word in front of a brace for a zone, literally. A key such as *.example.test is the zone of that
name and not of all names below example.test, so that no query reaches the block. The same goes for a key with a literal
\n or a quotation mark in it, which comes from a Corefile that was quoted twice, and for one with a brace too many, a comma
in the middle or an unknown scheme in front.

An empty Corefile is not an error to CoreDNS: it serves the plugin whoami on port 53, which answers every name with no
address.

Files of ConfigMap coredns-custom are pasted where the Corefile imports them: those named *.override inside of a server
block, where directives belong, those named *.server outside, where server blocks belong. CoreDNS does not load a server
block in a server block ("Unknown directive"), and takes directives outside of blocks for zones. A file that no line
imports or names has no effect: a note.

To mend it, write the zone itself, which holds all names below it:

    example.test:53 {
        forward . 192.0.2.53
    }

or move the text to a key of the other kind:

    data:
      example.server: |
        example.test:53 {
            forward . 192.0.2.53
        }`,
}

// emptyCorefile reports DM3019 for a Corefile without a server block and tells whether it is one.
func (c *corefileCheck) emptyCorefile() bool {
	cf := c.server.Corefile
	if len(cf.Expanded.Blocks) > 0 || len(cf.Expanded.Unread) > 0 {
		return false
	}
	c.say(DM3019, corefile.Token{File: cf.File, Line: 1}, finding.Finding{
		Message:  fmt.Sprintf("%q has no server block: CoreDNS serves whoami, which answers every name without an address", cf.File.Name),
		Evidence: []finding.Evidence{{Label: "served", Text: "whoami and log on port 53, what CoreDNS takes for an empty Corefile"}},
		Fix:      &finding.Fix{Summary: "write a server block, such as .:53 with the plugins kubernetes and forward"},
	})
	return true
}

// literalKeys reports DM3019 for keys that no query can match, and tells whether there is one.
func (c *corefileCheck) literalKeys(b *corefile.Block) (found bool) {
	for _, key := range b.Keys {
		if strings.Contains(key.Text, cluster.UnknownValue) {
			continue
		}
		zone, err := corefile.ParseZone(key.Text)
		if err != nil {
			continue // CoreDNS does not load it
		}
		f := finding.Finding{Fix: &finding.Fix{Summary: "write the zone as it is asked for, in a key of its own"}}
		switch scheme, name, _ := strings.Cut(zone.Names[0], "://"); {
		case strings.HasPrefix(zone.Names[0], "*.") && zone.Names[0] != "*.":
			name := zone.Names[0][len("*."):]
			f.Message = fmt.Sprintf("%q is taken literally: no query for a name below %s reaches the block", key.Text, strings.TrimSuffix(name, "."))
			f.Fix.Summary = "write " + strings.TrimSuffix(name, ".") + ", which holds every name below it"
			if c.offersDiff() && !c.zones().all[listener(zone)+" "+name] {
				f.Fix.Diff = tokenDiff(key, strings.Replace(key.Text, "*.", "", 1))
			}
		case name != "":
			f.Message = fmt.Sprintf("%q has a scheme that CoreDNS does not know (%s): it is taken for part of the zone, which no query reaches", key.Text, scheme)
		case slices.ContainsFunc([]string{`\n`, `\r`, `\t`, `"`, `'`, "`", ",", ";", "{", "}"}, func(s string) bool { return strings.Contains(key.Text, s) }),
			slices.Contains(strings.Split(zone.Names[0], "."), "*"):
			f.Message = fmt.Sprintf("%q is no zone that anybody asks for: CoreDNS takes it literally, and no query reaches the block", key.Text)
		default:
			continue
		}
		found = true
		c.say(DM3019, key, f)
	}
	return found
}

// importLine is one import of files in the main text.
type importLine struct {
	// pattern is an absolute path of the server.
	pattern string
	// inside tells that it stands in a server block or a snippet.
	inside bool
}

// importLines are the imports of the main text that do not name a snippet.
func importLines(cf *cluster.Corefile) []importLine {
	var list []importLine
	add := func(d *corefile.Directive, inside bool) {
		if d.Name.Text != "import" || len(d.Args) != 1 {
			return
		}
		pattern := d.Args[0].Text
		if slices.ContainsFunc(cf.File.Snippets, func(b *corefile.Block) bool { name, _ := b.SnippetName(); return name == pattern }) {
			return
		}
		if !path.IsAbs(pattern) {
			pattern = path.Join(path.Dir(cf.Path), pattern)
		}
		list = append(list, importLine{pattern, inside})
	}
	for _, d := range cf.File.Imports {
		add(d, false)
	}
	for _, b := range slices.Concat(cf.File.Blocks, cf.File.Snippets) {
		for _, d := range b.Body {
			add(d, true)
		}
	}
	return list
}

// misplaced reports DM3019 for imported files that hold blocks where directives belong, or the reverse, and for files
// beside them that are not read. It tells whether CoreDNS takes the text for something else than was meant.
func (c *corefileCheck) misplaced() bool {
	cf := c.server.Corefile
	lines := importLines(cf)
	contexts := map[string]map[bool]corefile.Source{}
	for _, l := range lines {
		sources, err := cf.Import(l.pattern)
		if err != nil {
			continue
		}
		for _, s := range sources {
			if contexts[s.Name] == nil {
				contexts[s.Name] = map[bool]corefile.Source{}
			}
			contexts[s.Name][l.inside] = s
		}
	}
	wrong := false
	for _, name := range slices.Sorted(maps.Keys(contexts)) {
		if len(contexts[name]) > 1 {
			continue // whatever it holds, one of the two is wrong
		}
		for inside, source := range contexts[name] {
			if inside {
				wrong = c.blocksInside(source, lines) || wrong
			} else {
				wrong = c.directivesOutside(source, lines) || wrong
			}
		}
	}
	c.notImported(lines)
	return wrong
}

// blocksInside reports the server blocks of a file that is imported in one.
func (c *corefileCheck) blocksInside(source corefile.Source, lines []importLine) bool {
	f, _ := corefile.ParseBody(source.Name, source.Data) // what can be read before an error counts
	found := false
	for _, d := range f.Body {
		if d.Open == nil || !c.isZoneKey(d) {
			continue
		}
		found = true
		c.say(DM3019, d.Name, finding.Finding{
			Message: fmt.Sprintf("%q is a server block in a file that is imported inside of one: CoreDNS does not load it", d.Name.Text),
			Fix:     &finding.Fix{Summary: "move the block to " + otherFile(source, lines, false)},
		})
	}
	return found
}

// directivesOutside reports the directives of a file that is imported outside of server blocks.
func (c *corefileCheck) directivesOutside(source corefile.Source, lines []importLine) bool {
	f, _ := corefile.Parse(source.Name, source.Data) // what can be read before an error counts
	found := false
	for _, b := range f.Blocks {
		if len(b.Keys) == 0 || !c.isPlugin(b.Keys[0].Text) {
			continue
		}
		if b.Open != nil && (len(b.Body) == 0 || slices.ContainsFunc(b.Body, func(d *corefile.Directive) bool { return c.isPlugin(d.Name.Text) })) {
			continue // a zone that is called like a plugin, such as local
		}
		found = true
		c.say(DM3019, b.Keys[0], finding.Finding{
			Message: fmt.Sprintf("%q is a directive in a file that is imported outside of server blocks: CoreDNS takes its words for zones", b.Keys[0].Text),
			Fix:     &finding.Fix{Summary: "move the directive to " + otherFile(source, lines, true)},
		})
	}
	return found
}

// otherFile names a file of the wanted context that would be imported, for people.
func otherFile(source corefile.Source, lines []importLine, inside bool) string {
	base := path.Base(source.Path)
	stem := strings.TrimSuffix(base, path.Ext(base))
	for _, l := range lines {
		if l.inside == inside && strings.Count(path.Base(l.pattern), "*") == 1 && path.Dir(l.pattern) == path.Dir(source.Path) {
			return "the key " + strings.Replace(path.Base(l.pattern), "*", stem, 1)
		}
	}
	if inside {
		return "the server block that it is for"
	}
	return "the Corefile, outside of its server blocks"
}

// notImported notes files of a directory from which others are imported, if no line imports or names them.
func (c *corefileCheck) notImported(lines []importLine) {
	cf := c.server.Corefile
	for _, p := range slices.Sorted(maps.Keys(cf.Mounts)) {
		if p == cf.Path || !slices.ContainsFunc(lines, func(l importLine) bool {
			return path.Dir(l.pattern) == path.Dir(p) && strings.ContainsAny(path.Base(l.pattern), "*?[")
		}) {
			continue
		}
		base := path.Base(p)
		named := slices.ContainsFunc(lines, func(l importLine) bool { ok, _ := path.Match(l.pattern, p); return ok })
		for other, m := range cf.Mounts {
			named = named || other != p && strings.Contains(m.Data, base)
		}
		if named {
			continue
		}
		m := cf.Mounts[p]
		c.Report(DM3019, finding.Finding{
			Severity: finding.Info,
			Message:  fmt.Sprintf("%q is imported by no line of the Corefile and named by none: it has no effect", base),
			Object:   m.Object,
			Position: &finding.Position{Source: m.Source(), Line: 1, Col: 1},
			Evidence: []finding.Evidence{{Label: "imported", Text: strings.Join(patterns(lines), ", ")}},
			Fix:      &finding.Fix{Summary: "rename the key to one that is imported, or remove it", Commands: []string{explain(DM3019)}},
		})
	}
}

func patterns(lines []importLine) []string {
	var list []string
	for _, l := range lines {
		list = append(list, l.pattern)
	}
	return list
}

// firstRelease is older than every release whose plugins are known, so that it stands for the first of them.
var firstRelease = resolve.Version{Major: 1}

// pluginNames are the directives of the oldest release whose plugins are known and of the newest, and proxy, which went
// before.
func pluginNames() map[string]bool {
	names := map[string]bool{"proxy": true}
	for _, v := range []resolve.Version{firstRelease, rehearse.Release()} {
		for _, name := range rehearse.Order(v) {
			names[name] = true
		}
	}
	return names
}

// isPlugin tells whether a word is a directive of CoreDNS.
func (c *corefileCheck) isPlugin(word string) bool { return c.plugins[word] }

// isZoneKey tells whether a directive with braces is a server block: a zone with a dot or a port, or a word that is no
// plugin and has nothing but plugins in its braces.
func (c *corefileCheck) isZoneKey(d *corefile.Directive) bool {
	name := d.Name.Text
	if c.isPlugin(name) || name == "" {
		return false
	}
	if strings.ContainsAny(name, ".:") {
		_, err := corefile.ParseZone(name)
		return err == nil
	}
	return len(d.Body) > 0 && !slices.ContainsFunc(d.Body, func(l *corefile.Directive) bool { return !c.isPlugin(l.Name.Text) }) &&
		slices.ContainsFunc(d.Body, func(l *corefile.Directive) bool { return answers(l.Name.Text) })
}
