package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/rehearse"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// DM3001 is a Corefile that CoreDNS does not load.
var DM3001 = &finding.Code{
	ID: "DM3001", Severity: finding.Error,
	Title: "CoreDNS does not load the Corefile",
	Doc: `CoreDNS refuses the Corefile, with the message that the finding quotes. A server that starts ends at once; one that runs
keeps the old text when it reloads, until its next start. The Corefile was given to CoreDNS itself, without its network and
with files and environment as the snapshot has them. What CoreDNS 1.15 refuses is reported for another release only where
that release refuses it too. A plugin that is not part of CoreDNS is no fault: the image may be a build of its own.

To mend it, correct the line that the finding names, such as a forward without the zone in front of its upstream:

    .:53 {
        forward . 192.0.2.53
    }`,
}

// tryTime bounds how long CoreDNS may take to load a Corefile.
const tryTime = 5 * time.Second

// tryCorefile gives the Corefile to CoreDNS. It returns what CoreDNS refuses, or why that is not known; nil for neither.
func tryCorefile(cf *cluster.Corefile, release resolve.Version) (*rehearse.Refusal, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tryTime)
	defer cancel()
	judge, err := rehearse.Start(ctx, rehearse.Config{Corefile: cf, Version: release})
	if err == nil {
		return nil, judge.Stop(ctx)
	}
	if r, ok := errors.AsType[*rehearse.Refusal](err); ok {
		return r, nil
	}
	return nil, err
}

// refusals reports DM3001, after the codes that know more of a line. It returns why the Corefile was not judged, "" where
// it was.
func (c *corefileCheck) refusals() (unjudged string) {
	cf := c.server.Corefile
	if c.windowsPort() || c.zoneAsDirective() || c.brokenBind() {
		return ""
	}
	release, ok := c.release()
	if !ok && cf.ExpandErr == nil {
		return "" // a build with plugins and a version of its own
	}
	if !ok {
		release = rehearse.Release() // syntax is the same in all
	}
	r, err := tryCorefile(cf, release)
	switch {
	case err != nil:
		return "CoreDNS did not try the Corefile: " + err.Error()
	case r == nil || !r.Certain && !c.refusedByAll(r):
		return ""
	}
	at := c.faulty(c.tokenAt(r.Position), r)
	switch {
	case c.saidOfLine(at), strings.Contains(r.Msg, cluster.UnknownValue), c.unknownValueAt(at.Position()):
		return ""
	case r.Plugin == "" && strings.HasPrefix(r.Msg, "cannot serve "): // two blocks for one zone
		return ""
	case strings.HasPrefix(r.Msg, "File to import not found"):
		return ""
	}
	c.refused(at, r.Plugin, r.Msg)
	return ""
}

// refused reports a message of CoreDNS.
func (c *corefileCheck) refused(at corefile.Token, plugin, msg string) {
	const longest = 100
	msg = strings.TrimRight(strings.Join(strings.Fields(msg), " "), ". ")
	subject, fix := plugin, "correct the line as the documentation of the plugin "+plugin+" says"
	if plugin == "" {
		subject, fix = cmp.Or(c.server.Corefile.Key, path.Base(c.server.Corefile.File.Name)), "correct the line"
	}
	f := finding.Finding{
		Message:  fmt.Sprintf("%q stops CoreDNS when it starts: %s", shorten(subject, 30), shorten(msg, longest)),
		Evidence: []finding.Evidence{{Label: "coredns", Text: msg}},
		Fix:      &finding.Fix{Summary: fix},
	}
	c.say(DM3001, at, f)
}

// shorten returns a text of at most n letters.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// refusedByAll tells whether every release refuses what CoreDNS 1.15 does, although the judge leaves that open: limits
// and expressions that are checked since the plugins exist (plugin/forward/setup.go of 1.4.0, plugin/rewrite/name.go,
// plugin/template/setup.go and plugin/bind/setup.go of 1.6.9), and a plugin in the place of a property, which is what
// a missing brace comes to.
func (c *corefileCheck) refusedByAll(r *rehearse.Refusal) bool {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(s string) bool { return strings.Contains(r.Msg, s) })
	}
	switch r.Plugin {
	case "forward":
		return has("more than 15 TOs configured") || r.Property == "" && has("Wrong argument count")
	case "rewrite":
		return has("invalid regex")
	case "template":
		return has("could not compile")
	case "bind":
		return has("not a valid IP address")
	case "kubernetes", "cache", "health", "hosts":
		return has("unknown property '") && c.isPlugin(r.Property) && r.Property != "tls"
	}
	return false
}

// faulty is the directive that a message is about. CoreDNS names no line where the plugin finds the fault after it has
// read the directive, and then the message quotes a word of it.
func (c *corefileCheck) faulty(at corefile.Token, r *rehearse.Refusal) corefile.Token {
	if r.Property != "" {
		return at
	}
	for _, b := range c.server.Corefile.Expanded.Blocks {
		same := b.Named(r.Plugin)
		if !slices.ContainsFunc(same, func(d *corefile.Directive) bool {
			return d.Name.File.Name == at.File.Name && d.Name.Start == at.Start
		}) {
			continue
		}
		best, length := at, 0
		for _, d := range same {
			d.Walk(func(l *corefile.Directive) {
				for _, t := range l.Args {
					quoted := strings.Contains(r.Msg, fmt.Sprintf("%q", t.Text))
					if len(t.Text) > length && (quoted || len(t.Text) > 3 && strings.Contains(r.Msg, t.Text)) {
						best, length = t, len(t.Text)
					}
				}
			})
		}
		return best
	}
	return at
}

// tokenAt is the place of a message as a token.
func (c *corefileCheck) tokenAt(at corefile.Position) corefile.Token {
	cf := c.server.Corefile
	for _, f := range append([]*corefile.File{cf.File}, cf.Expanded.Files...) {
		if f.Name != at.File || at.Line < 1 {
			continue
		}
		start := 0
		for range at.Line - 1 {
			i := strings.IndexByte(f.Src[start:], '\n')
			if i < 0 {
				break
			}
			start += i + 1
		}
		return corefile.Token{File: f, Line: at.Line, Range: corefile.Range{Start: min(start+max(at.Col-1, 0), len(f.Src))}}
	}
	return corefile.Token{File: cf.File, Line: 1}
}

// saidOfLine tells whether a finding names the line of a token: a code that says more than the message of CoreDNS.
func (c *corefileCheck) saidOfLine(t corefile.Token) bool {
	line := fmt.Sprintf(" %s:%d:", t.File.Name, t.Line)
	for place := range c.reported {
		if strings.Contains(place, line) {
			return true
		}
	}
	return false
}

// unknownValueAt tells whether a variable of the environment whose value is not known stands on a line, or in the
// directive that holds it: CoreDNS would see another text.
func (c *corefileCheck) unknownValueAt(at corefile.Position) bool {
	on := func(t corefile.Token) bool { return t.File.Name == at.File && t.Line == at.Line }
	for _, b := range c.server.Corefile.Expanded.Blocks {
		for _, d := range b.Body {
			here, unknown := false, false
			d.Walk(func(l *corefile.Directive) {
				for _, t := range append([]corefile.Token{l.Name}, l.Args...) {
					here, unknown = here || on(t), unknown || strings.Contains(t.Text, cluster.UnknownValue)
				}
			})
			if here && unknown {
				return true
			}
		}
		if slices.ContainsFunc(b.Keys, func(t corefile.Token) bool { return on(t) && strings.Contains(t.Text, cluster.UnknownValue) }) {
			return true
		}
	}
	return false
}

// windowsPort reports a key whose port is a variable in the form of Windows, {%NAME%}, of which nothing is known. Nothing
// sets such a variable in a container, and CoreDNS refuses a key that ends in a colon (plugin/normalize.go).
func (c *corefileCheck) windowsPort() bool {
	for _, b := range c.server.Corefile.Expanded.Blocks {
		for _, key := range b.Keys {
			before, port, ok := cutLast(key.Source(), ":")
			if !ok || !strings.HasPrefix(port, "{%") || !strings.HasSuffix(port, "%}") || !strings.Contains(key.Text, cluster.UnknownValue) {
				continue
			}
			c.say(DM3001, key, finding.Finding{
				Message: fmt.Sprintf("%q has a variable in the form of Windows for its port: while it is not set, CoreDNS does not start", key.Source()),
				Evidence: []finding.Evidence{{
					Label: "coredns", Text: fmt.Sprintf("error inspecting server blocks: expecting data after last colon: %q", before+":"),
				}},
				Fix: &finding.Fix{Summary: "write the port"},
			})
			return true
		}
	}
	return false
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// zoneAsDirective reports a server block in the place of a directive, which follows from directives in front of the first
// block or from a brace that is missing. No plugin of anybody's is called like a zone.
func (c *corefileCheck) zoneAsDirective() bool {
	for _, b := range c.server.Corefile.Expanded.Blocks {
		for _, d := range b.Body {
			if d.Open == nil || !strings.ContainsAny(d.Name.Text, ".:") || !c.isZoneKey(d) {
				continue
			}
			if !c.saidOfLine(d.Name) {
				c.refused(d.Name, "", "Unknown directive '"+d.Name.Text+"'")
			}
			return true
		}
	}
	return false
}

// brokenBind reports a bind to what is meant for an address and is none: four numbers between dots, which no interface is
// called. The interfaces of the server's machine are not known, so CoreDNS cannot be asked (plugin/bind/setup.go).
func (c *corefileCheck) brokenBind() bool {
	for _, b := range c.server.Corefile.Expanded.Blocks {
		for _, d := range b.Named("bind") {
			for _, t := range d.Args {
				_, err := netip.ParseAddr(t.Text)
				if err == nil || strings.Count(t.Text, ".") != 3 || strings.Trim(t.Text, "0123456789.") != "" {
					continue
				}
				c.refused(t, "bind", fmt.Sprintf("not a valid IP address or interface name: %q", t.Text))
				return true
			}
		}
	}
	return false
}
