package checks

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// DM3021 is an upstream that is a host name, or TLS that is not what it seems.
var DM3021 = &finding.Code{
	ID: "DM3021", Severity: finding.Error,
	Title: "forward names its upstream by host name, or TLS without the name to verify",
	Doc: `Before CoreDNS 1.14.4, forward takes addresses and files like /etc/resolv.conf, and CoreDNS does not load a host name: an
error. From 1.14.4 it resolves host names once, when it starts, by the resolv.conf of its own pod or the option resolver,
and does not start when that fails. So the cluster's DNS needs another DNS to start, and keeps the address that it got: a
warning.

tls_servername has no effect on an upstream without tls://: queries leave in plain text although the line looks as if they
did not. And with tls:// but without tls_servername, CoreDNS verifies the certificate against the address, so that every
query fails unless the certificate holds it: warnings. The well-known public resolvers have their addresses in their
certificates: there it is a note.

To mend it, write the address with tls:// and the name in the certificate:

    forward . tls://192.0.2.53 {
        tls_servername dns.example.org
    }`,
}

// addressCertificates are the public resolvers whose certificates hold their addresses, as their operators document:
// https://developers.cloudflare.com/1.1.1.1/encryption/dns-over-tls/, https://developers.google.com/speed/public-dns/docs/dns-over-tls,
// https://docs.quad9.net/services/. Verification by address succeeds there.
var addressCertificates = []string{
	"1.1.1.1", "1.0.0.1", "2606:4700:4700::1111", "2606:4700:4700::1001",
	"8.8.8.8", "8.8.4.4", "2001:4860:4860::8888", "2001:4860:4860::8844",
	"9.9.9.9", "149.112.112.112", "2620:fe::fe", "2620:fe::9",
}

// upstream is one TO of forward (plugin/forward/resolve.go, plugin/pkg/parse/host.go).
type upstream struct {
	word corefile.Token
	// transport is dns, tls, quic or https.
	transport string
	// addr is the address; invalid for a host name or a file.
	addr netip.Addr
	// host is the host name; empty for an address or a file.
	host string
	// plain tells that the word is an address and nothing else.
	plain bool
	// named tells that the word holds a name to verify, as tls://192.0.2.53%dns.example.org.
	named bool
}

// upstreamOf reads a TO of forward. It says false for one whose value is not known or that no release takes.
func (c *corefileCheck) upstreamOf(t corefile.Token) (upstream, bool) {
	u := upstream{word: t, transport: "dns"}
	rest := t.Text
	if strings.Contains(rest, cluster.UnknownValue) {
		return u, false
	}
	if scheme, after, ok := strings.Cut(rest, "://"); ok {
		if !slices.Contains([]string{"dns", "tls", "quic", "https"}, scheme) {
			return u, false
		}
		u.transport, rest = scheme, after
	}
	if strings.Contains(rest, "/") {
		return u, u.transport == "dns"
	}
	if addr, err := netip.ParseAddr(strings.Trim(rest, "[]")); err == nil {
		u.addr, u.named, u.plain = addr.WithZone(""), addr.Zone() != "", rest == t.Text
		return u, true
	}
	host, _, _ := strings.Cut(rest, "%")
	u.named = host != rest
	if at, err := netip.ParseAddrPort(rest); err == nil {
		u.addr, u.named = at.Addr().WithZone(""), at.Addr().Zone() != ""
		return u, true
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		host = host[:i]
	}
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		u.addr = addr.WithZone("")
		return u, true
	}
	if !isHostName(host) || path.Ext(host) == ".conf" || c.mounted(host) {
		return u, !isHostName(host) && c.mounted(host)
	}
	u.host = host
	return u, true
}

// mounted tells whether a relative path may be a file of the server.
func (c *corefileCheck) mounted(name string) bool {
	cf := c.server.Corefile
	p := path.Join(cf.Dir, name)
	_, file := cf.Mounts[p]
	_, opaque := cf.Opaque[p]
	return file || opaque
}

// isHostName tells whether a word is made of labels of letters, digits and hyphens (RFC 1123 section 2.1).
func isHostName(s string) bool {
	if _, err := resolve.Absolute(s); err != nil {
		return false
	}
	return !strings.ContainsFunc(strings.ToLower(s), func(r rune) bool { return r > 127 || r != '.' && (!isNameByte(byte(r)) || r == '_') })
}

// numericEnd tells whether the last label is a number: no top-level domain is, so it was meant for an address.
func numericEnd(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	return strings.Trim(last, "0123456789") == ""
}

// upstreams reports DM3021 for the forward directives of a block.
func (c *corefileCheck) upstreams(b *corefile.Block) {
	for _, d := range b.Named("forward") {
		if len(d.Args) < 2 {
			continue
		}
		names := d.Named("tls_servername")
		var all []upstream
		known := true
		for _, t := range d.Args[1:] {
			u, ok := c.upstreamOf(t)
			known = known && ok
			if ok {
				all = append(all, u)
			}
		}
		encrypted := false
		for _, u := range all {
			encrypted = encrypted || u.transport != "dns"
			switch {
			case u.host != "":
				c.hostUpstream(u)
			case u.addr.IsValid() && u.transport == "tls" && !u.named && len(names) == 0:
				c.unnamedUpstream(u)
			}
		}
		if known && !encrypted && len(names) > 0 {
			c.plainUpstreams(names[0], all)
		}
	}
}

// hostUpstream reports an upstream that is a host name.
func (c *corefileCheck) hostUpstream(u upstream) {
	f := finding.Finding{
		Severity: finding.Warning,
		Message:  fmt.Sprintf("%q is a host name: CoreDNS resolves it once, at start, and does not start while that fails", u.host),
		Evidence: []finding.Evidence{{Label: "resolved by", Text: "the resolv.conf of the server's pod, or the option resolver"}},
		Fix:      &finding.Fix{Summary: "write the address of " + strings.TrimSuffix(u.host, ".")},
	}
	if u.transport != "dns" {
		f.Fix.Summary += ", and the name as tls_servername"
	}
	switch {
	case numericEnd(u.host):
		f.Severity = finding.Error
		f.Message = fmt.Sprintf("%q is neither an address nor a host name that anybody resolves: CoreDNS does not start", u.host)
		f.Fix.Summary = "write the address of the upstream"
		f.Evidence = nil
	case !c.atLeast(1, 14, 4):
		f.Severity = finding.Error
		f.Message = fmt.Sprintf("%q is a host name: CoreDNS %s takes addresses only and does not load", u.host, c.server.Version)
		f.Evidence = []finding.Evidence{{Label: "from 1.14.4", Text: "host names are resolved once, at start"}}
	}
	c.say(DM3021, u.word, f)
}

// unnamedUpstream reports tls:// without a name to verify.
func (c *corefileCheck) unnamedUpstream(u upstream) {
	f := finding.Finding{
		Severity: finding.Warning,
		Message:  fmt.Sprintf("%q has no tls_servername: every query fails unless the certificate holds the address", u.word.Text),
		Fix:      &finding.Fix{Summary: "add tls_servername with the name in the upstream's certificate"},
	}
	if slices.Contains(addressCertificates, u.addr.String()) {
		f.Severity = finding.Info
		f.Message = fmt.Sprintf("%q has no tls_servername: the certificate is verified by its address, which it holds today", u.word.Text)
	}
	c.say(DM3021, u.word, f)
}

// plainUpstreams reports a tls_servername that no upstream uses.
func (c *corefileCheck) plainUpstreams(d *corefile.Directive, all []upstream) {
	f := finding.Finding{
		Severity: finding.Warning,
		Message:  fmt.Sprintf("%q has no effect without tls:// in front of an upstream: queries leave in plain text", d.Name.Text),
		Fix:      &finding.Fix{Summary: "write tls:// in front of the upstream's address, or remove the line"},
	}
	for _, u := range all {
		f.Evidence = append(f.Evidence, finding.Evidence{Label: "upstream", Text: u.word.Text, Position: positionOf(u.word)})
	}
	if c.offersDiff() && len(all) == 1 && all[0].plain {
		f.Fix.Diff = tokenDiff(all[0].word, "tls://"+all[0].word.Text)
	}
	c.say(DM3021, d.Name, f)
}
