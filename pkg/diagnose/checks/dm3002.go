package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coredns/corefile-migration/migration"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/rehearse"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// DM3002 is a plugin or an option that the release no longer has.
var DM3002 = &finding.Code{
	ID: "DM3002", Severity: finding.Error,
	Title: "a plugin or an option is gone, or about to go",
	Doc: `A release of CoreDNS dropped a plugin or an option that the Corefile has. With a removed one the server does not load the
Corefile: it ends at start, and a running server that reloads keeps the old text until its next start. An error. What is
ignored or deprecated is a warning: it has no effect any more, or the next release may refuse it.

The release is the one that runs. To see what another one would say before an upgrade, name it with --coredns-version.
Where neither is known, the newest release counts. What was dropped when is known from the list of plugins of each release
and from the data of coredns/corefile-migration.

To mend it, write what took its place:

    .:53 {
        kubernetes cluster.local in-addr.arpa ip6.arpa {
            pods insecure
        }
        forward . /etc/resolv.conf
    }`,
}

// retired is what a release did to a plugin or an option.
type retired struct {
	// status is one of migration: deprecated, ignored, removed.
	status string
	// since is the first release with it.
	since resolve.Version
	// instead is the plugin that takes the place; may be empty.
	instead string
}

// retirement tells what happened to the plugin of a directive, or to an option of it, up to a release. Option is nil for
// the plugin itself.
func retirement(release resolve.Version, directive, option *corefile.Directive) (retired, bool) {
	name := directive.Name.Text
	switch {
	case option == nil:
		if dropped, ok := droppedPlugin(name, release); ok {
			return retired{status: migration.SevRemoved, since: dropped}, true
		}
	case option.Name.Text == "transfer" && (name == "file" || name == "auto"):
		// plugin/file/setup.go and plugin/auto/setup.go have it up to 1.7.1.
		since := resolve.Version{Major: 1, Minor: 8}
		return retired{status: migration.SevRemoved, since: since, instead: "transfer"}, since.Compare(release) <= 0
	case name == "kubernetes" && option.Name.Text == "endpoint" && len(option.Args) < 2:
		return retired{}, false // only a list of them was given up
	case name == "proxy" && option.Name.Text == "protocol" && !slices.Contains(option.Values(), "https_google"):
		return retired{}, false // only that protocol was given up
	}
	return migrated(release, name, option)
}

// migrated asks corefile-migration, with a text of its own: it would read the user's in another way than CoreDNS does.
func migrated(release resolve.Version, plugin string, option *corefile.Directive) (retired, bool) {
	first, last := "", ""
	for _, v := range releases() {
		if first == "" {
			first = v.String()
		}
		if v.Compare(release) <= 0 {
			last = v.String()
		}
	}
	text := ". {\n" + plugin + "\n}\n"
	if !isWord(plugin) {
		return retired{}, false
	}
	if option != nil {
		if !isWord(option.Name.Text) {
			return retired{}, false
		}
		text = ". {\n" + plugin + " {\n" + option.Name.Text + "\n}\n}\n"
	}
	if last == "" {
		return retired{}, false
	}
	notices, err := migration.Deprecated(first, last, text)
	if err != nil {
		return retired{}, false
	}
	var r retired
	for _, n := range notices {
		about := n.Plugin == plugin && (option == nil && n.Option == "" || option != nil && n.Option == option.Name.Text)
		if !about || n.Severity == r.status {
			continue
		}
		switch n.Severity {
		case migration.SevDeprecated, migration.SevIgnored, migration.SevRemoved:
			r = retired{status: n.Severity, instead: n.ReplacedBy}
			r.since, _ = resolve.ParseVersion(n.Version)
		}
	}
	return r, r.status != ""
}

// isWord tells whether a word of a Corefile reads as itself, whatever stands around it.
func isWord(s string) bool {
	return s != "" && s != "import" && !strings.ContainsFunc(s, func(r rune) bool { return r > 127 || !isNameByte(byte(r)) })
}

// releases are those that corefile-migration knows, the oldest first.
func releases() []resolve.Version {
	var list []resolve.Version
	for name := range maps.Keys(migration.Versions) {
		if v, ok := resolve.ParseVersion(name); ok {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, resolve.Version.Compare)
	return list
}

// droppedPlugin returns the release that dropped a plugin, if one up to the given release did.
func droppedPlugin(name string, release resolve.Version) (resolve.Version, bool) {
	if slices.Contains(rehearse.Order(release), name) || !slices.Contains(rehearse.Order(firstRelease), name) {
		return resolve.Version{}, false
	}
	for _, v := range releases() {
		if v.Compare(release) <= 0 && !slices.Contains(rehearse.Order(v), name) {
			return v, true
		}
	}
	return resolve.Version{}, false
}

// release is the release that the Corefile is judged for; false for a server with a version of its own.
func (c *corefileCheck) release() (resolve.Version, bool) {
	if c.server.Implementation == cluster.NodeLocalDNS || c.server.Implementation == cluster.KubeDNS {
		return resolve.Version{}, false
	}
	if v, ok := resolve.ParseVersion(c.server.Version); ok {
		return v, true
	}
	return rehearse.Release(), true
}

// retiredParts reports DM3002 for the directives of a block.
func (c *corefileCheck) retiredParts(b *corefile.Block) {
	release, ok := c.release()
	if !ok {
		return
	}
	for _, d := range b.Body {
		if !c.isPlugin(d.Name.Text) {
			continue
		}
		if r, ok := c.retirement(release, d, nil); ok {
			c.retired(release, r, d, nil)
			continue
		}
		for _, option := range d.Body {
			if r, ok := c.retirement(release, d, option); ok {
				c.retired(release, r, d, option)
			}
		}
	}
}

// maxRetirements bounds how many kinds of directives and options are looked up for one Corefile: all of CoreDNS has fewer.
const maxRetirements = 1000

// retirement is the function of the same name, asked once for each kind of directive.
func (c *corefileCheck) retirement(release resolve.Version, d, option *corefile.Directive) (retired, bool) {
	key := d.Name.Text
	if option != nil {
		key += " " + option.Name.Text
		switch option.Name.Text {
		case "endpoint":
			key += fmt.Sprint(" ", len(option.Args) < 2)
		case "protocol":
			key += fmt.Sprint(" ", slices.Contains(option.Values(), "https_google"))
		}
	}
	r, ok := c.retirements[key]
	if !ok && len(c.retirements) < maxRetirements {
		if r, ok = retirement(release, d, option); !ok {
			r = retired{}
		}
		c.retirements[key] = r
	}
	return r, r.status != ""
}

// retired reports one plugin or option.
func (c *corefileCheck) retired(release resolve.Version, r retired, d, option *corefile.Directive) {
	at, subject := d.Name, fmt.Sprintf("%q", d.Name.Text)
	if option != nil {
		at, subject = option.Name, fmt.Sprintf("%q of %s", option.Name.Text, d.Name.Text)
	}
	f := finding.Finding{Severity: finding.Warning, Fix: &finding.Fix{Summary: "remove " + at.Text}}
	switch r.status {
	case migration.SevRemoved:
		f.Severity = finding.Error
		f.Message = fmt.Sprintf("%s was removed in CoreDNS %s: CoreDNS %s does not load the Corefile", subject, r.since, release)
	case migration.SevIgnored:
		f.Message = fmt.Sprintf("%s has no effect from CoreDNS %s on: CoreDNS %s ignores it", subject, r.since, release)
	default:
		f.Message = fmt.Sprintf("%s is deprecated from CoreDNS %s on: a later release does not load it", subject, r.since)
	}
	switch {
	case option != nil && option.Name.Text == "endpoint":
		f.Message = strings.Replace(f.Message, subject, subject+" with several addresses", 1)
		f.Fix.Summary = "keep the first address alone"
		f.Fix.Diff = c.directiveDiff(option, func(o *corefile.Directive) (corefile.Edit, error) {
			return o.Replace(o.Name.Text + " " + o.Args[0].Source())
		})
	case option != nil && r.instead != "":
		f.Fix.Summary = "use the plugin " + r.instead + " instead"
	case option != nil:
		f.Fix.Diff = c.directiveDiff(option, (*corefile.Directive).Delete)
	case r.instead != "":
		f.Fix.Summary = "use the plugin " + r.instead + " instead"
		if c.offersDiff() && len(d.Body) == 0 && r.instead == "forward" {
			f.Fix.Diff = tokenDiff(d.Name, r.instead) // both take FROM TO... (plugin/proxy and plugin/forward, README)
		}
	default:
		f.Fix.Diff = c.directiveDiff(d, (*corefile.Directive).Delete)
	}
	if c.server.Version == "" {
		f.Evidence = []finding.Evidence{{Label: "version", Text: "not known, so the newest release counts; --coredns-version names another"}}
	}
	c.say(DM3002, at, f)
}

// directiveDiff is the diff of an edit of a directive where it is written; empty where it cannot be edited, or where
// enough diffs were offered.
func (c *corefileCheck) directiveDiff(d *corefile.Directive, edit func(*corefile.Directive) (corefile.Edit, error)) string {
	origin := d.Origin()
	if origin == nil || !c.offersDiff() {
		return ""
	}
	e, err := edit(origin)
	if err != nil {
		return ""
	}
	return editDiff(origin.File(), e)
}
