package checks

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/reference"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// DM1007 is a name under the cluster domain that does not exist.
var DM1007 = &finding.Code{
	ID:       "DM1007",
	Severity: finding.Error,
	Title:    "a host name names no Service, namespace or pod record",
	Doc: `A workload uses a name under the cluster domain, or a short one that only the search list could complete, and no
Service, no pod record and no other server of which anything is known answers it. The look-up ends with "Name does not
resolve".

It is an error where nothing else can answer. It is a warning for a name of one label where no Service anywhere is named
so and the search domains that pods inherit from their node are not known: one of those might answer. It
is a note where only the default of a chart names it: Istio up to 1.21 writes zipkin as the tracer whether or not it is
there.

Names of members of a headless Service (pod-0.db.shop.svc.cluster.local) are not judged while the Service exists,
because members come and go.

To mend it, correct the name, create the Service, or take out the setting if nothing uses it:

    kubectl get svc -A | grep ledger`,
}

// DM1008 is a name under the domain of some other cluster.
var DM1008 = &finding.Code{
	ID:       "DM1008",
	Severity: finding.Warning,
	Title:    "a host name ends in a cluster domain that is not this cluster's",
	Doc: `A workload uses a name of the form SERVICE.NAMESPACE.svc.DOMAIN, and DOMAIN is neither the domain of this cluster
nor a zone that its DNS server knows. The name was copied from another cluster, or this cluster's domain was changed.
Pods and upstream servers do not know such a domain, so the name does not resolve.

To mend it, use this cluster's domain, or leave the domain out so that the search list completes the name:

    orders.shop.svc`,
}

// noSuchName reports DM1007.
func noSuchName(p *diagnose.Pass, l *lookup) bool {
	r := l.result(resolve.Glibc)
	if r.Verdict() == resolve.Resolves || len(r.Steps) == 0 {
		return false
	}
	if !insideOnly(p, l) || slices.ContainsFunc(r.Steps, func(s resolve.Step) bool { return namesExisting(p, s.Name) }) {
		return false
	}
	f := finding.Finding{
		Message:  fmt.Sprintf("%q names no Service: it does not resolve", l.host),
		Evidence: []finding.Evidence{walk(r)},
	}
	labels := l.labels()
	services, hint := meant(p, labels[0], "")
	near := ""
	if len(services) == 0 {
		near = similarService(p, l)
	}
	unseen := slices.ContainsFunc(r.Steps, func(s resolve.Step) bool { return s.Unseen })
	if l.dots() == 0 {
		if l.strength < reference.Certain {
			return false
		}
		if slices.ContainsFunc(r.Steps, func(s resolve.Step) bool {
			return !s.Answer.Known && !s.Unseen && !s.Bare && s.Answer.Match.Node != resolve.NamespaceNode
		}) {
			return false // a search domain that is known may answer
		}
		if unseen && len(services) == 0 && near == "" {
			f.Severity = finding.Warning
			f.Message = fmt.Sprintf("%q names no Service: it resolves only if a search domain of the nodes answers", l.host)
		}
	}
	if writtenByChart(l) {
		f.Severity = finding.Info
	}
	if unseen {
		f.Evidence = append(f.Evidence, finding.Evidence{
			Label: "assumed", Text: "no search domain that pods inherit from their node answers this name",
		})
	}
	f.Evidence = append(f.Evidence, hint...)
	f.Fix = &finding.Fix{
		Summary:  "correct the name, create the Service, or take out the setting",
		Commands: []string{explain(DM1007)},
	}
	switch {
	case len(services) == 1:
		f.Fix.Summary = "use " + fqdn(services[0].Name, services[0].Namespace, p.Facts().Domain)
		if l.canAlias(p.Facts().Domain) {
			f.Fix.Summary = "add an alias in " + l.client.namespace + ", or use " + fqdn(services[0].Name, services[0].Namespace, p.Facts().Domain)
			f.Fix.Manifest = aliasManifest(l.client.namespace, labels[0], fqdn(services[0].Name, services[0].Namespace, p.Facts().Domain))
		}
	case near != "":
		f.Evidence = append(f.Evidence, finding.Evidence{Label: "meant?", Text: "Service " + near})
	}
	l.report(p, DM1007, f)
	return true
}

// writtenByChart tells whether a name only stands where a chart puts it in every installation, whether or not anything is
// there: Istio up to 1.21 names zipkin in its own namespace as the tracer of the mesh
// (manifests/charts/istio-control/istio-discovery/templates/configmap.yaml).
func writtenByChart(l *lookup) bool {
	return l.labels()[0] == "zipkin" && len(l.labels()) == 2 && !slices.ContainsFunc(l.refs, func(r reference.Reference) bool {
		return r.Port != 9411 || r.Origin.ConfigMap != "istio" && !strings.HasPrefix(r.Origin.ConfigMap, "istio-")
	})
}

// insideOnly tells whether nothing outside the cluster can be meant by the host: it lies under the cluster domain,
// ends in svc, is a Service name with the name of a namespace that exists, or has one label.
func insideOnly(p *diagnose.Pass, l *lookup) bool {
	name, err := resolve.Absolute(l.host)
	if err != nil {
		return false
	}
	labels := l.labels()
	last := labels[len(labels)-1]
	switch {
	case resolve.Under(name, p.Facts().Domain):
		return true
	case strings.HasSuffix(l.host, "."):
		return false // a name outside, written to stay there
	case len(labels) == 1:
		return true
	case last == "svc" && len(labels) <= 4:
		return p.Index().HasNamespace(labels[len(labels)-2]) || len(labels) == 3
	case len(labels) == 2:
		return p.Index().HasNamespace(last) && !isTopLevel(last) && !reservedSuffix(last)
	}
	return false
}

// reservedSuffix tells whether a label ends names of private networks: no sign that a namespace is meant.
func reservedSuffix(label string) bool {
	switch label {
	case "local", "internal", "lan", "home", "corp", "intranet", "private", "test", "example", "invalid", "localdomain", "arpa":
		return true
	}
	return false
}

// namesExisting tells whether a name under the cluster domain belongs to something that exists, although it may have no
// address right now: a Service without endpoints, a member or a port of one, an alias that leads nowhere (DM2001 says so
// of the alias), a pod. Such a name is not wrong.
func namesExisting(p *diagnose.Pass, name string) bool {
	m, ok := resolve.Shape(name, p.Facts().Domain)
	if !ok {
		return false
	}
	switch m.Node {
	case resolve.ServiceNode, resolve.PortNode:
		return p.Index().Service(m.Namespace, m.Service) != nil
	case resolve.EndpointNode:
		return hasMembers(p, p.Index().Service(m.Namespace, m.Service))
	case resolve.PodNode:
		return p.Index().HasNamespace(m.Namespace)
	case resolve.ServerNode:
		return true
	}
	return false
}

// hasMembers tells whether pods may have names below that of a Service: where it is headless, where a pod names it as its
// subdomain, and where its endpoints are not known. Else a.b means Service a in namespace b and not member a of Service b.
func hasMembers(p *diagnose.Pass, s *corev1.Service) bool {
	switch {
	case s == nil || s.Spec.Type == corev1.ServiceTypeExternalName:
		return false
	case s.Spec.ClusterIP == corev1.ClusterIPNone:
		return true
	}
	if _, known := p.Index().Endpoints(s.Namespace, s.Name); !known {
		return true
	}
	return slices.ContainsFunc(p.Workloads(), func(w *cluster.Workload) bool {
		return w.Spec != nil && w.Spec.Subdomain == s.Name && w.Object.Namespace == s.Namespace
	})
}

// similarService returns namespace/name of a Service in the namespace that the host names whose name differs from the
// host's in one letter, or "".
func similarService(p *diagnose.Pass, l *lookup) string {
	labels := l.labels()
	ns := l.client.namespace
	if len(labels) > 1 {
		ns = labels[1]
	}
	for _, s := range p.Index().ServicesIn(ns) {
		if oneEdit(s.Name, labels[0]) {
			return objectName(s)
		}
	}
	return ""
}

// oneEdit tells whether a and b, of at least four letters, differ by one letter put in, left out, exchanged or swapped
// with its neighbour.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < 4 || len(b)-len(a) > 1 || a == b {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// clustersetDomain is that of Services which several clusters share (KEP-1645). Whoever implements them serves it beside
// the cluster domain; only a Corefile without it shows that nobody does.
const clustersetDomain = "clusterset.local."

// otherDomain returns the domain of a name SERVICE.NAMESPACE.svc.DOMAIN that is neither under the cluster domain nor
// known to a DNS server of the cluster, absolute; "" otherwise. A domain under a public suffix may be served outside, but
// none of the form cluster.SUFFIX, which has the shape of the default: cluster.prod is cluster.local of another cluster.
func otherDomain(f *cluster.Facts, name string) string {
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	i := slices.Index(labels, "svc")
	if i < 2 || i == len(labels)-1 || resolve.Under(name, f.Domain) {
		return ""
	}
	rest := labels[i+1:]
	if isTopLevel(rest[len(rest)-1]) && !(len(rest) == 2 && rest[0] == "cluster") {
		return ""
	}
	domain := strings.Join(rest, ".") + "."
	if f.ServesZone(domain) || domain == clustersetDomain && (f.DNS == nil || f.DNS.Corefile == nil) {
		return ""
	}
	return domain
}

// otherClusterDomain reports DM1008.
func otherClusterDomain(p *diagnose.Pass, l *lookup) bool {
	name, err := resolve.Absolute(l.host)
	if err != nil {
		return false
	}
	domain := otherDomain(p.Facts(), name)
	if domain == "" || l.strength < reference.Certain && strings.Count(domain, ".") == 1 {
		return false // a domain of one label is rare, and names of other things look so: web.shop.svc.web-tls
	}
	if a := l.client.config.server.Answer(name); a.Known && a.HasAddress() {
		return false
	}
	here := strings.TrimSuffix(strings.TrimSuffix(name, domain), ".") + "." + strings.TrimSuffix(p.Facts().Domain, ".")
	f := finding.Finding{
		Message: fmt.Sprintf("%q ends in %s, but this cluster's domain is %s: nobody here answers it",
			l.host, strings.TrimSuffix(domain, "."), strings.TrimSuffix(p.Facts().Domain, ".")),
		Fix: &finding.Fix{
			Summary:  "use " + here + " if this cluster is meant",
			Commands: []string{explain(DM1008)},
		},
	}
	if src := p.Facts().DomainSource; src != "" {
		f.Evidence = []finding.Evidence{{Label: "domain", Text: strings.TrimSuffix(p.Facts().Domain, ".") + " from " + src}}
	}
	l.report(p, DM1008, f)
	return true
}
