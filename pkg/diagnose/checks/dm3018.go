package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// DM3018 is a server block that answers nothing.
var DM3018 = &finding.Code{
	ID: "DM3018", Severity: finding.Error,
	Title: "a server block has no plugin that answers",
	Doc: `CoreDNS gives a query to the block with the longest zone that holds the name, and to that block alone. If it has only
plugins that log, cache or rewrite, the query ends there: SERVFAIL ("no next plugin found"), or REFUSED where it has none
of those either. Nothing falls back to the block of a shorter zone, which would have answered. So a block

    svc.cluster.local:53 {
        errors
        cache 30
    }

takes every Service of the cluster away. Plugins that are not part of CoreDNS count as ones that answer. A block on a port
where no other block answers is a note: nobody may be meant to ask it.

To mend it, remove the block, or give it a plugin that answers:

    svc.cluster.local:53 {
        errors
        cache 30
        kubernetes cluster.local
    }`,
}

// silentPlugins are the plugins of CoreDNS 1.6 to 1.15 that answer no query for an address by themselves: they hand it on
// to the next plugin, or have no part in queries (the ServeDNS of each, and plugin.cfg for the list). acl, chaos and local
// are not among them: a block may be there for nothing but their answers.
var silentPlugins = []string{
	"any", "autopath", "bind", "bufsize", "cache", "cancel", "debug", "dns64", "dnssec", "dnstap", "errors", "geoip",
	"grpc_server", "header", "health", "https", "https3", "loadbalance", "log", "loop", "metadata", "minimal", "multisocket",
	"nsid", "on", "pprof", "prometheus", "proxyproto", "quic", "ready", "reload", "rewrite", "root", "shed", "sign", "siit",
	"timeouts", "tls", "trace", "transfer", "tsig", "view",
}

// answers tells whether a directive may answer queries for addresses.
func answers(directive string) bool { return !slices.Contains(silentPlugins, directive) }

// silentBlock reports DM3018.
func (c *corefileCheck) silentBlock(b *corefile.Block) {
	if !isSilent(b) || c.mayHoldMore(b) || len(b.Keys) == 0 {
		return
	}
	zones, err := b.Zones()
	if err != nil {
		return // CoreDNS does not load it
	}
	key, zone := b.Keys[0], zones[0]
	f := finding.Finding{
		Message: fmt.Sprintf("%q has no plugin that answers: queries for its names fail, no other block is asked", key.Text),
		Fix:     &finding.Fix{Summary: "add a plugin that answers, such as forward or kubernetes"},
	}
	var names []string
	for _, d := range b.Body {
		names = append(names, d.Name.Text)
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	f.Evidence = []finding.Evidence{{Label: "plugins", Text: strings.Join(names, ", ")}}

	zonesOf := c.zones()
	above := zonesOf.holding(zone)
	beside := zonesOf.listeners[listener(zone)]
	switch {
	case above != nil:
		f.Fix.Summary = "remove the block, so that " + above.Keys[0].Text + " answers, or add a plugin that answers"
		if c.offersDiff() && len(b.Keys) == 1 && key.Via == nil && b.Origin() != nil {
			if edit, err := b.Origin().Delete(); err == nil {
				f.Fix.Diff = editDiff(b.Origin().File(), edit)
			}
		}
		f.Evidence = append(f.Evidence, finding.Evidence{
			Label: "hidden", Text: above.Keys[0].Text + " would answer", Position: positionOf(above.Keys[0]),
		})
	case !beside && zone.Port != "53":
		f.Severity = finding.Info
	}
	c.say(DM3018, key, f)
}

func positionOf(t corefile.Token) *finding.Position {
	at := t.Position()
	return &finding.Position{Source: at.File, Line: at.Line, Col: at.Col}
}

// isSilent tells whether no directive of the block answers.
func isSilent(b *corefile.Block) bool {
	return !slices.ContainsFunc(b.Body, func(d *corefile.Directive) bool { return answers(d.Name.Text) })
}

// mayHoldMore tells whether a file that was not read may be pasted into the block.
func (c *corefileCheck) mayHoldMore(b *corefile.Block) bool {
	return slices.ContainsFunc(c.server.Corefile.Expanded.Unread, func(t corefile.Token) bool {
		if t.Via != nil || t.File != b.File() {
			return true
		}
		in := t.File.BlockAt(t.Start)
		return in != nil && in == b.Origin()
	})
}

// zoneIndex finds the blocks of a Corefile by zone. A Corefile may have very many.
type zoneIndex struct {
	// all are the zones of all blocks, answering those of the blocks that answer, by listener and name.
	all       map[string]bool
	answering map[string]*corefile.Block
	// listeners are those at which a block answers.
	listeners map[string]bool
}

// zones returns the index, made once.
func (c *corefileCheck) zones() *zoneIndex {
	if c.index != nil {
		return c.index
	}
	c.index = &zoneIndex{all: map[string]bool{}, answering: map[string]*corefile.Block{}, listeners: map[string]bool{}}
	for _, b := range c.server.Corefile.Expanded.Blocks {
		answers := !isSilent(b) || c.mayHoldMore(b)
		for _, key := range b.Keys {
			z, err := corefile.ParseZone(key.Text)
			if err != nil {
				continue
			}
			for _, name := range z.Names {
				at := listener(z) + " " + name
				c.index.all[at] = true
				if _, ok := c.index.answering[at]; answers && !ok {
					c.index.answering[at] = b
				}
			}
			c.index.listeners[listener(z)] = c.index.listeners[listener(z)] || answers
		}
	}
	return c.index
}

// holding returns the block that answers for the longest zone that holds the first name of a zone, or nil.
func (x *zoneIndex) holding(z corefile.Zone) *corefile.Block {
	for name := z.Names[0]; ; {
		if b := x.answering[listener(z)+" "+name]; b != nil || name == "." {
			return b
		}
		if _, name, _ = strings.Cut(name, "."); name == "" {
			name = "."
		}
	}
}

// listener names the transport and port of a zone.
func listener(z corefile.Zone) string { return z.Transport + ":" + z.Port }
