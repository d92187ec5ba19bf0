package checks

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// The codes about ExternalName Services.
var (
	DM2001 = &finding.Code{
		ID: "DM2001", Severity: finding.Error,
		Title: "an alias points to a name in the cluster that does not exist",
		Doc: `The externalName of the Service lies under the cluster domain and names no Service. Whoever asks for the alias gets a
CNAME that leads nowhere: glibc and Go try the rest of the search list, musl stops.

To mend it, point the alias to a Service that exists, or delete it:

    kubectl patch svc ledger -n payments --type merge -p '{"spec":{"externalName":"ledger.backoffice.svc.cluster.local"}}'`,
	}
	DM2002 = &finding.Code{
		ID: "DM2002", Severity: finding.Error,
		Title: "aliases point to each other in a loop",
		Doc: `Following the externalName of the Service leads back to it. CoreDNS notices the loop and answers without an address;
nobody who asks for any name of the loop gets one.

To mend it, point one of the aliases to the Service that is meant, or delete them:

    kubectl patch svc ledger -n payments --type merge -p '{"spec":{"externalName":"ledger.backoffice.svc.cluster.local"}}'`,
	}
	DM2003 = &finding.Code{
		ID: "DM2003", Severity: finding.Error,
		Title: "an alias points to an IP address",
		Doc: `The externalName of the Service is an IP address. It is served as a CNAME, and a CNAME target is a name: 192.0.2.10
becomes the name 192.0.2.10., which does not exist.

To mend it, use a Service without selector and an EndpointSlice with the address:

    kind: EndpointSlice
    metadata: {name: db-1, labels: {kubernetes.io/service-name: db}}
    addressType: IPv4
    endpoints: [{addresses: [192.0.2.10]}]`,
	}
	DM2004 = &finding.Code{
		ID: "DM2004", Severity: finding.Error,
		Title: "an alias points to something that is no host name",
		Doc: `The externalName of the Service holds a scheme, a port, a path, a blank, an empty label or another character that no
host name has. It is served as a CNAME as it is written, and that name does not exist.

To mend it, keep the host name alone; ports and paths belong to whoever calls the Service:

    externalName: api.example.org`,
	}
	DM2005 = &finding.Code{
		ID: "DM2005", Severity: finding.Error,
		Title: "an alias points to a short name",
		Doc: `The externalName of the Service is a name that pods complete by their search list, such as postgres or postgres.db. The
target of an alias is absolute: no search domain is added to it, so postgres.db is asked for at the root of DNS.

To mend it, write the full name:

    externalName: postgres.db.svc.cluster.local`,
	}
	DM2006 = &finding.Code{
		ID: "DM2006", Severity: finding.Warning,
		Title: "a chain of aliases is longer than the server follows",
		Doc: `The Service is an alias of an alias of an alias, and so on. A DNS server follows a bounded number of them for one query
and then answers without an address.

To mend it, point the alias to the last name of the chain:

    externalName: ledger.backoffice.svc.cluster.local`,
	}
	DM2007 = &finding.Code{
		ID: "DM2007", Severity: finding.Info,
		Title: "ports of an alias do nothing",
		Doc: `The Service is of type ExternalName and lists ports that its target does not have. An alias is a name and nothing else:
no port is translated, and a client connects to the port that it was told.

To mend it, use the target's port in the client, and take the ports out of the alias:

    --ledger-url=http://ledger:8443`,
	}
	DM2008 = &finding.Code{
		ID: "DM2008", Severity: finding.Info,
		Title: "a target behind an alias sees the name of the alias",
		Doc: `The Service is an alias for a host that is used with HTTPS. The client sends the name that it was given, the alias, as
HTTP Host and TLS server name. A target that serves several names, or checks the name of the certificate, refuses it.

To mend it, use the target's own name in the client, or set host name and server name there:

    curl --connect-to api.example.org:443:api:443 https://api.example.org/`,
	}
	DM2009 = &finding.Code{
		ID: "DM2009", Severity: finding.Warning,
		Title: "an alias points to another cluster domain or holds capitals",
		Doc: `The externalName of the Service ends in a cluster domain that is not this cluster's and that its DNS server does not
serve, or it holds capital letters, which some consumers compare byte by byte.

To mend it, use this cluster's domain and lower case:

    externalName: orders.shop.svc.cluster.local`,
	}
	DM2010 = &finding.Code{
		ID: "DM2010", Severity: finding.Warning,
		Title: "the server that follows an alias cannot resolve its target",
		Doc: `The externalName of the Service lies in a zone that only another server or another port knows: the Corefile of the cache
on the nodes (NodeLocal DNSCache) has a block for it and the Corefile of CoreDNS has none. CoreDNS, not the cache, follows the alias, and asks its own
upstream for the target.

To mend it, add the zone to the Corefile of CoreDNS as well:

    corp.example.test:53 {
        forward . 192.0.2.53
    }`,
	}
	DM2011 = &finding.Code{
		ID: "DM2011", Severity: finding.Info,
		Title: "a final dot or a selector of an alias has no effect",
		Doc: `The Service is of type ExternalName. Its target is absolute with or without a final dot, and a selector is not read. DNS
works the same; other consumers, such as ingress controllers and meshes, may compare the text or expect endpoints.

To tidy up, take the dot or the selector out:

    spec:
      type: ExternalName
      externalName: api.example.org`,
	}
)

// aliases judges Services of type ExternalName by themselves.
var aliases = &diagnose.Analyzer{
	Name:  "aliases",
	Doc:   "Services of type ExternalName: targets, chains, ports",
	Needs: []cluster.Resource{cluster.Services},
	Uses: []cluster.Resource{
		cluster.Namespaces, cluster.EndpointSlices, cluster.Pods, cluster.ConfigMaps, cluster.Nodes, cluster.ServiceEntries, cluster.Texts,
	},
	Codes: []*finding.Code{DM2001, DM2002, DM2003, DM2004, DM2005, DM2006, DM2007, DM2008, DM2009, DM2010, DM2011},
	Run: func(p *diagnose.Pass) {
		if p.Facts().DNS == nil {
			p.Skip(noServer)
			return
		}
		model := model(p.View)
		https := usedWithTLS(p)
		for _, s := range p.Index().Aliases() {
			a := alias{Pass: p, Service: s, model: model, https: https[objectOf(s)]}
			if !a.target() {
				a.capitals()
			}
			a.ports()
			a.tls()
			a.noEffect()
		}
	},
}

// alias is one ExternalName Service under judgement.
type alias struct {
	*diagnose.Pass
	*corev1.Service
	model *cluster.Model
	// https are the places that use the alias with TLS.
	https []finding.Evidence
}

func (a *alias) say(code *finding.Code, severity finding.Severity, message string, fix finding.Fix, evidence ...finding.Evidence) {
	fix.Commands = append(fix.Commands, explain(code))
	all := append([]finding.Evidence{{Label: "target", Text: a.Spec.ExternalName}}, evidence...)
	a.Report(code, finding.Finding{Severity: severity, Object: objectOf(a.Service), Message: message, Evidence: all, Fix: &fix})
}

// setTarget is the command that points the alias elsewhere, if it can be written.
func (a *alias) setTarget(target string) []string {
	if !isPlain(a.Name, a.Namespace, target) {
		return nil
	}
	return []string{fmt.Sprintf(`kubectl patch svc %s -n %s --type merge -p '{"spec":{"externalName":"%s"}}'`, a.Name, a.Namespace, target)}
}

// target judges where the alias leads and tells whether it reported a fault. The first fault found is the one reported.
func (a *alias) target() bool {
	raw := a.Spec.ExternalName
	bare := strings.TrimSuffix(raw, ".")
	if addr, err := netip.ParseAddr(strings.Trim(bare, "[]")); err == nil {
		fix := finding.Fix{Summary: "use a Service without selector and an EndpointSlice with the address"}
		if a.Facts().DNS.Implementation == cluster.KubeDNS {
			a.say(DM2003, finding.Info, fmt.Sprintf("%q points to the address %s: kube-dns serves it, CoreDNS does not", a.Name, addr), fix)
			return true
		}
		a.say(DM2003, 0, fmt.Sprintf("%q points to the address %s: a CNAME leads to a name, and none is called so", a.Name, addr), fix)
		return true
	}
	if why := noHostName(raw); why != "" {
		fix := finding.Fix{Summary: "point it to the host name alone, which RFC 1123 allows letters, digits and hyphens"}
		if host := hostIn(raw); host != "" {
			fix.Summary = "use " + host
			fix.Commands = a.setTarget(host)
		}
		a.say(DM2004, 0, fmt.Sprintf("%q points to %q, which is no host name: %s", a.Name, raw, why), fix)
		return true
	}
	name, err := resolve.Absolute(raw)
	if err != nil {
		a.say(DM2004, 0, fmt.Sprintf("%q points to %q, which is no host name", a.Name, raw), finding.Fix{Summary: "use a host name"})
		return true
	}
	if a.short(name) {
		return true
	}
	if resolve.Under(name, a.Facts().Domain) {
		return a.inCluster(name)
	}
	if domain := otherDomain(a.Facts(), name); domain != "" {
		here := strings.TrimSuffix(name, domain) + strings.TrimSuffix(a.Facts().Domain, ".")
		a.say(DM2009, 0, fmt.Sprintf("%q points to cluster domain %s, but this cluster's is %s: nobody here answers it",
			a.Name, strings.TrimSuffix(domain, "."), strings.TrimSuffix(a.Facts().Domain, ".")),
			finding.Fix{Summary: "use " + here + " if this cluster is meant", Commands: a.setTarget(here)})
		return true
	}
	if zone, at := a.Facts().OnlyBeforeDNS(name); zone != "" {
		a.say(DM2010, 0, fmt.Sprintf("%q points into zone %s, which the server that follows the alias does not know",
			a.Name, strings.TrimSuffix(zone, ".")),
			finding.Fix{Summary: "add zone " + strings.TrimSuffix(zone, ".") + " to the Corefile of CoreDNS"},
			finding.Evidence{Label: "zone", Text: at.String(), Position: &at})
		return true
	}
	return false
}

// noHostName says what makes a target no host name, or "". A final dot is fine. The characters are those of RFC 1123
// section 2.1; underscores stand in the names of SRV records, which have no address.
func noHostName(raw string) string {
	switch {
	case raw == "" || raw == ".":
		return "it is empty"
	case strings.Contains(raw, "://"):
		return "it has a scheme"
	case strings.ContainsAny(raw, " \t\r\n"):
		return "it has a blank"
	case strings.Contains(raw, "/"):
		return "it has a path"
	case strings.Contains(raw, ":"):
		return "it has a port"
	case strings.Contains(raw, "_"):
		return "it has an underscore"
	case strings.Contains(raw, "*"):
		return "it has a wildcard"
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(raw, "."), ".") {
		switch {
		case label == "":
			return "it has an empty label"
		case len(label) > 63:
			return "a label has more than 63 letters"
		case label[0] == '-' || label[len(label)-1] == '-':
			return "a label begins or ends with a hyphen"
		}
		for _, r := range label {
			if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-') {
				return fmt.Sprintf("it has the character %q", r)
			}
		}
	}
	if len(raw) > 254 {
		return "it has more than 253 letters"
	}
	return ""
}

// hostIn returns the host of a target that was written as a URL or with a port, or "".
func hostIn(raw string) string {
	if _, rest, ok := strings.Cut(raw, "://"); ok {
		raw = rest
	}
	raw, _, _ = strings.Cut(raw, "/")
	if i := strings.LastIndexByte(raw, '@'); i >= 0 {
		raw = raw[i+1:]
	}
	raw, _, _ = strings.Cut(raw, ":")
	raw = strings.ToLower(strings.TrimSpace(raw))
	if noHostName(raw) != "" {
		return ""
	}
	return raw
}

// short reports DM2005: a target that only a search list could complete.
func (a *alias) short(name string) bool {
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	last := labels[len(labels)-1]
	full := ""
	var severity finding.Severity
	switch {
	case len(labels) == 1:
		if a.Index().Service(a.Namespace, labels[0]) != nil && labels[0] != a.Name {
			full = fqdn(labels[0], a.Namespace, a.Facts().Domain)
		}
	case last == "svc":
		if len(labels) == 3 && a.Index().Service(labels[1], labels[0]) != nil {
			full = fqdn(labels[0], labels[1], a.Facts().Domain)
		}
	case len(labels) == 2 && !isTopLevel(last) && a.Index().Service(labels[1], labels[0]) != nil:
		full = fqdn(labels[0], labels[1], a.Facts().Domain)
	case len(labels) == 2 && !isTopLevel(last) && !reservedSuffix(last) && a.Index().HasNamespace(last):
		// It has the form SERVICE.NAMESPACE, and nothing shows what else could be meant.
		severity = finding.Warning
	default:
		return false
	}
	if ans := a.model.Answer(name); ans.Known && ans.HasAddress() {
		return false // the upstream answers it
	}
	fix := finding.Fix{Summary: "write the full name of the target"}
	if full != "" {
		fix.Summary, fix.Commands = "use "+full, a.setTarget(full)
	}
	a.say(DM2005, severity, fmt.Sprintf("%q points to %q, which is asked for at the root of DNS: targets get no search domain",
		a.Name, strings.TrimSuffix(name, ".")), fix)
	return true
}

// inCluster judges a target under the cluster domain: loops, chains that are too long, names that do not exist.
func (a *alias) inCluster(name string) bool {
	chain, end := a.chain()
	if i := slices.Index(chain, end); end != nil && i >= 0 {
		loop := chain[i:]
		if a.Service != slices.MinFunc(loop, func(x, y *corev1.Service) int { return strings.Compare(objectName(x), objectName(y)) }) {
			// The loop is reported once, for the first of its members; an alias that leads into it is no part of it.
			return slices.Contains(loop, a.Service) || a.intoLoop(loop)
		}
		names := make([]string, 0, len(loop)+1)
		for _, s := range loop {
			names = append(names, objectName(s))
		}
		names = append(names, objectName(loop[0]))
		message := fmt.Sprintf("%q is an alias of itself: it has no address", a.Name)
		if len(loop) > 1 {
			message = fmt.Sprintf("%q leads back to itself over %d aliases: none of them has an address", a.Name, len(loop))
		}
		var related []finding.Object
		for _, s := range loop[1:] {
			related = append(related, objectOf(s))
		}
		a.Report(DM2002, finding.Finding{
			Object: objectOf(a.Service), Message: message, Related: related,
			Evidence: []finding.Evidence{{Label: "loop", Text: strings.Join(names, " → ")}},
			Fix:      &finding.Fix{Summary: "point one of them to the Service that is meant", Commands: []string{explain(DM2002)}},
		})
		return true
	}
	if limit := a.model.AliasLimit(); limit > 0 && len(chain) > limit {
		last := chain[len(chain)-1]
		a.say(DM2006, 0, fmt.Sprintf("%q leads over %d aliases, and the server follows %d: it has no address", a.Name, len(chain), limit),
			finding.Fix{Summary: "point it to " + last.Spec.ExternalName, Commands: a.setTarget(strings.TrimSuffix(last.Spec.ExternalName, "."))})
		return true
	}
	ans := a.model.Answer(name)
	if !ans.Known || ans.HasAddress() {
		return false
	}
	if namesExisting(a.Pass, name) {
		return false
	}
	labels := strings.Split(strings.TrimSuffix(strings.TrimSuffix(name, a.Facts().Domain), "."), ".")
	message := fmt.Sprintf("%q points to %q, which names no Service: it has no address", a.Name, strings.TrimSuffix(name, "."))
	if ans.Match.Node == resolve.NamespaceNode {
		message = fmt.Sprintf("%q points to namespace %s, not to a Service: it has no address", a.Name, ans.Match.Namespace)
	}
	fix := finding.Fix{Summary: "point it to a Service that exists, or delete it"}
	services, hint := meant(a.Pass, labels[0], "")
	services = slices.DeleteFunc(services, func(s *corev1.Service) bool { return s == a.Service })
	if len(services) == 1 {
		full := fqdn(services[0].Name, services[0].Namespace, a.Facts().Domain)
		fix = finding.Fix{Summary: "use " + full, Commands: a.setTarget(full)}
	}
	if len(services) == 0 {
		hint = nil
	}
	hint = append([]finding.Evidence{{Label: "answer", Text: strings.TrimSuffix(name, ".") + " " + ans.String()}}, hint...)
	a.say(DM2001, 0, message, fix, hint...)
	return true
}

// intoLoop reports an alias that leads into a loop of others.
func (a *alias) intoLoop(loop []*corev1.Service) bool {
	a.say(DM2002, 0, fmt.Sprintf("%q leads into the loop of alias %s: it has no address", a.Name, objectName(loop[0])),
		finding.Fix{Summary: "point it to the Service that is meant"})
	return true
}

// chain follows the alias through other aliases of the cluster and returns all of them, this one first. End is the
// alias at which the chain comes back to itself, nil where it does not.
func (a *alias) chain() (chain []*corev1.Service, end *corev1.Service) {
	for s := a.Service; ; {
		if slices.Contains(chain, s) {
			return chain, s
		}
		chain = append(chain, s)
		name, err := resolve.Absolute(s.Spec.ExternalName)
		if err != nil {
			return chain, nil
		}
		rest, ok := strings.CutSuffix(name, ".svc."+a.Facts().Domain)
		labels := strings.Split(rest, ".")
		if !ok || len(labels) != 2 {
			return chain, nil
		}
		next := a.Index().Service(labels[1], labels[0])
		if next == nil || next.Spec.Type != corev1.ServiceTypeExternalName {
			return chain, nil
		}
		s = next
	}
}

// capitals reports DM2009 for letter case.
func (a *alias) capitals() {
	if lower := strings.ToLower(a.Spec.ExternalName); lower != a.Spec.ExternalName {
		a.say(DM2009, 0, fmt.Sprintf("%q points to a name with capitals: consumers that compare it byte by byte miss it", a.Name),
			finding.Fix{Summary: "use " + strings.TrimSuffix(lower, "."), Commands: a.setTarget(strings.TrimSuffix(lower, "."))})
	}
}

// ports reports DM2007.
func (a *alias) ports() {
	if len(a.Spec.Ports) == 0 {
		return
	}
	var target *corev1.Service
	if chain, end := a.chain(); end == nil {
		last := chain[len(chain)-1]
		if name, err := resolve.Absolute(last.Spec.ExternalName); err == nil {
			if rest, ok := strings.CutSuffix(name, ".svc."+a.Facts().Domain); ok {
				if svc, ns, ok := strings.Cut(rest, "."); ok && !strings.Contains(ns, ".") {
					target = a.Index().Service(ns, svc)
				}
			}
		}
	}
	for _, port := range a.Spec.Ports {
		translated := port.TargetPort != (intstr.IntOrString{}) && port.TargetPort.String() != "0" && port.TargetPort.String() != fmt.Sprint(port.Port)
		missing := target != nil && !slices.ContainsFunc(target.Spec.Ports, func(tp corev1.ServicePort) bool { return tp.Port == port.Port })
		if !translated && !missing {
			continue
		}
		message := fmt.Sprintf("%q maps port %d to %s: an alias maps no port", a.Name, port.Port, port.TargetPort.String())
		if missing {
			message = fmt.Sprintf("%q has port %d, which its target %s does not have: an alias maps no port", a.Name, port.Port, objectName(target))
		}
		a.say(DM2007, 0, message, finding.Fix{Summary: "use the target's port in the client, and take the ports out"})
		return
	}
}

// tls reports DM2008 for targets outside the cluster that are used with TLS.
func (a *alias) tls() {
	name, err := resolve.Absolute(a.Spec.ExternalName)
	if err != nil || resolve.Under(name, a.Facts().Domain) || noHostName(a.Spec.ExternalName) != "" {
		return
	}
	evidence := a.https
	for _, port := range a.Spec.Ports {
		if port.Port == 443 || strings.HasPrefix(port.Name, "https") {
			evidence = append(evidence, finding.Evidence{Label: "port", Text: fmt.Sprintf("%d %s", port.Port, port.Name)})
		}
	}
	if len(evidence) == 0 {
		return
	}
	target := strings.TrimSuffix(name, ".")
	a.say(DM2008, 0, fmt.Sprintf("%q is used with TLS, and %s will see the name of the alias", a.Name, target),
		finding.Fix{Summary: "use " + target + " in the client, or set host name and server name there"}, evidence...)
}

// noEffect reports DM2011.
func (a *alias) noEffect() {
	var what string
	switch dot := strings.HasSuffix(a.Spec.ExternalName, ".") && len(a.Spec.ExternalName) > 1; {
	case dot && len(a.Spec.Selector) > 0:
		what = "a final dot and a selector, which change"
	case dot:
		what = "a final dot, which changes"
	case len(a.Spec.Selector) > 0:
		what = "a selector, which changes"
	default:
		return
	}
	a.say(DM2011, 0, fmt.Sprintf("%q has %s nothing for DNS", a.Name, what), finding.Fix{Summary: "take it out"})
}

// usedWithTLS finds the aliases that workloads use in URLs with https.
func usedWithTLS(p *diagnose.Pass) map[finding.Object][]finding.Evidence {
	used := map[finding.Object][]finding.Evidence{}
	for _, c := range clients(p) {
		for _, l := range c.lookups {
			var places []finding.Evidence
			for _, r := range l.refs {
				if r.Scheme == "https" || r.Scheme == "wss" || r.Scheme == "grpcs" {
					places = append(places, finding.Evidence{Label: "used in", Text: c.object.String() + " " + r.Origin.String()})
				}
			}
			if len(places) == 0 {
				continue
			}
			r := l.result(resolve.Glibc)
			for _, s := range r.Steps {
				if m := s.Answer.Match; m.Node == resolve.ServiceNode && !m.Captured {
					o := finding.Object{Kind: "Service", Namespace: m.Namespace, Name: m.Service}
					used[o] = append(used[o], places...)
					break
				}
			}
		}
	}
	return used
}
