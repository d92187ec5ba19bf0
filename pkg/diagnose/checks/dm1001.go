package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// DM1001 is the name of a namespace that kube-dns answers with aliases.
var DM1001 = &finding.Code{
	ID:       "DM1001",
	Severity: finding.Error,
	Title:    "a host name reaches a namespace, and kube-dns answers with the aliases in it",
	Doc: `A workload uses a host name that is no Service in its own namespace, but the name of another namespace. The search
list turns it into NAMESPACE.svc.CLUSTER-DOMAIN, which is a node of the DNS tree. kube-dns keeps an ExternalName
Service as a leaf of that node and answers a query for the node with its leaves: an alias to one of them, another
from query to query. The workload so talks to the targets of left-over aliases in turn, and sees answers of services
that it never meant: 401 from one, 404 from the next.

To mend it, give the name a Service in the namespace of the workload (an ExternalName Service that points to the
Service that is meant), or use the full name of that Service. Aliases that nobody uses any more can be deleted.

    apiVersion: v1
    kind: Service
    metadata: {name: my-app, namespace: new-namespace-1}
    spec: {type: ExternalName, externalName: my-app.new-namespace-2.svc.cluster.local}

With CoreDNS the same name gives an empty answer: DM1002.`,
}

// DM1002 is the name of a namespace that CoreDNS answers with nothing.
var DM1002 = &finding.Code{
	ID:       "DM1002",
	Severity: finding.Error,
	Title:    "a host name reaches a namespace, and CoreDNS answers without an address",
	Doc: `A workload uses a host name that is no Service in its own namespace, but the name of another namespace. The search
list turns it into NAMESPACE.svc.CLUSTER-DOMAIN, which exists: CoreDNS answers NOERROR without records (NODATA),
whatever the namespace holds.

Where nothing later in the search answers, the name does not resolve for anybody: an error. Where a later search
domain or the name itself would answer, glibc and Go go on and find it, and musl (Alpine) stops at the empty answer: a
warning, because the same image works or fails with its C library.

To mend it, add an ExternalName Service of that name in the namespace of the workload, or use the full name of the
Service that is meant. A final dot keeps a name outside the cluster off the search list.

    --ledger-endpoint=ledger.backoffice.svc.cluster.local:8443`,
}

// namespaceStep returns the index of the first step of a look-up that reaches the node of a namespace, if no earlier
// step is certain to give an address; -1 otherwise.
func namespaceStep(r resolve.Result) int {
	for i, s := range r.Steps {
		if s.Answer.Match.Node == resolve.NamespaceNode {
			return i
		}
		if s.Answer.Known && s.Answer.HasAddress() {
			return -1
		}
	}
	return -1
}

// namespaceAliases reports DM1001.
func namespaceAliases(p *diagnose.Pass, l *lookup) bool {
	if p.Facts().DNS.Implementation != cluster.KubeDNS {
		return false
	}
	r := l.result(resolve.Glibc)
	i := namespaceStep(r)
	if i < 0 || len(r.Steps[i].Answer.Aliases) == 0 {
		return false
	}
	step := r.Steps[i]
	ns := step.Answer.Match.Namespace
	var names, lines []string
	var related []finding.Object
	for _, a := range step.Answer.Aliases {
		if a.Namespace != ns {
			continue
		}
		names = append(names, a.Name)
		lines = append(lines, a.Namespace+"/"+a.Name+" → "+strings.TrimSuffix(a.Target, "."))
		related = append(related, finding.Object{Kind: "Service", Namespace: a.Namespace, Name: a.Name})
	}
	how := "its aliases " + enumerate(names, "and", 4) + " in turn"
	if len(names) == 1 {
		how = "its alias " + names[0]
	}
	evidence := []finding.Evidence{walk(r)}
	for _, line := range lines {
		evidence = append(evidence, finding.Evidence{Label: "alias", Text: line})
	}
	fix, hint := pointToService(p, l, ns)
	l.report(p, DM1001, finding.Finding{
		Message:  fmt.Sprintf("%q reaches namespace %s, not a Service: kube-dns answers with %s", l.host, ns, how),
		Evidence: append(evidence, hint...),
		Related:  append([]finding.Object{{Kind: "Namespace", Name: ns}}, related...),
		Fix:      fix,
	})
	return true
}

// namespaceNode reports DM1002. What servers other than CoreDNS answer for a namespace is not known for certain: there
// the name is one that names no Service, DM1007.
func namespaceNode(p *diagnose.Pass, l *lookup) bool {
	if p.Facts().DNS.Implementation != cluster.CoreDNS {
		return false
	}
	r := l.result(resolve.Glibc)
	i := namespaceStep(r)
	if i < 0 || r.Steps[i].Answer.HasAddress() {
		return false
	}
	ns := r.Steps[i].Answer.Match.Namespace
	later := laterAnswer(r, i)
	evidence := []finding.Evidence{walk(r)}
	f := finding.Finding{Related: []finding.Object{{Kind: "Namespace", Name: ns}}}
	switch {
	case later == "":
		f.Message = fmt.Sprintf("%q reaches namespace %s, not a Service: it does not resolve", l.host, ns)
		if slices.ContainsFunc(r.Steps, func(s resolve.Step) bool { return s.Unseen }) {
			evidence = append(evidence, finding.Evidence{
				Label: "assumed", Text: "no search domain that pods inherit from their node answers this name",
			})
		}
	default:
		f.Severity = finding.Warning
		f.Message = fmt.Sprintf("%q reaches namespace %s before %s: it does not resolve with musl", l.host, ns, later)
	}
	fix, hint := pointToService(p, l, ns)
	if later != "" && strings.Contains(later, ".") && len(hint) == 0 {
		fix = &finding.Fix{Summary: "use " + later + ". with a final dot", Commands: []string{explain(DM1002)}}
	}
	f.Evidence, f.Fix = slices.Concat(evidence, hint), fix
	l.report(p, DM1002, f)
	return true
}

// laterAnswer names the first candidate after step i that gives an address, or that may give one because a search
// domain that is known has answers that are not; "" where there is none. A name that nothing was appended to is not
// expected to resolve where it has one label or ends in svc or pod, which are no top-level domains, and no search domain
// is made up where the nodes' are not known.
func laterAnswer(r resolve.Result, i int) string {
	for _, s := range r.Steps[i+1:] {
		switch {
		case s.Answer.Known && s.Answer.HasAddress():
			return stepName(s)
		case s.Answer.Known || s.Unseen || s.Name == "":
		case s.Bare && (strings.Count(s.Name, ".") == 1 || strings.HasSuffix(s.Name, ".svc.") || strings.HasSuffix(s.Name, ".pod.")):
		default:
			return stepName(s)
		}
	}
	return ""
}

// pointToService is the fix of a name that means a Service elsewhere: an alias where exactly one Service has the name,
// and otherwise words. The evidence names the Services that may be meant.
func pointToService(p *diagnose.Pass, l *lookup, reached string) (*finding.Fix, []finding.Evidence) {
	name := l.labels()[0]
	domain := p.Facts().Domain
	services, hint := meant(p, name, l.client.namespace)
	code := DM1002
	if p.Facts().DNS.Implementation == cluster.KubeDNS {
		code = DM1001
	}
	commands := []string{explain(code)}
	switch {
	case len(services) == 0:
		return &finding.Fix{
			Summary:  "use the full name of the Service that is meant; namespace " + reached + " is not one",
			Commands: commands,
		}, nil
	case len(services) > 1 || !l.canAlias(domain):
		s := services[0]
		return &finding.Fix{
			Summary:  "use the full name of the Service that is meant, such as " + fqdn(s.Name, s.Namespace, domain),
			Commands: commands,
		}, hint
	}
	target := fqdn(name, services[0].Namespace, domain)
	return &finding.Fix{
		Summary:  fmt.Sprintf("add an alias in %s, or use %s", l.client.namespace, target),
		Manifest: aliasManifest(l.client.namespace, name, target),
		Commands: commands,
	}, hint
}
