package checks

import (
	"fmt"
	"strings"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// DM1006 is a name that means a Service and something else.
var DM1006 = &finding.Code{
	ID:       "DM1006",
	Severity: finding.Warning,
	Title:    "a name is a Service in the cluster and also a name outside",
	Doc: `A workload uses a name of two labels that is Service a in namespace b, and the same name exists outside the cluster:
by itself, or below a search domain that the pod inherits from its node. Which of them a pod reaches depends on the
order of the search list, on ndots and on the C library.

To mend it, use the full name of the Service, or the outside name with a final dot:

    http://orders.shop.svc.cluster.local/
    http://orders.shop./`,
}

// ambiguousName reports DM1006.
func ambiguousName(p *diagnose.Pass, l *lookup) bool {
	if l.dots() != 1 || strings.HasSuffix(l.host, ".") {
		return false
	}
	labels := l.labels()
	s := p.Index().Service(labels[1], labels[0])
	if s == nil {
		return false
	}
	// Every name that a pod may ask for: where does the outside answer?
	outside := ""
	for _, c := range resolve.Candidates(resolve.Resolver{Library: resolve.Glibc}, l.client.config.Config, l.host) {
		if c.Name == "" || resolve.Under(c.Name, p.Facts().Domain) {
			continue
		}
		if a := l.client.config.server.Answer(c.Name); a.Known && a.HasAddress() {
			outside = c.Name
			break
		}
	}
	if outside == "" {
		return false
	}
	reach := map[string][]string{}
	for _, lib := range []resolve.Library{resolve.Glibc, resolve.Musl, resolve.Go} {
		r := l.result(lib)
		which := "the Service"
		switch {
		case r.By < 0:
			which = "neither"
		case r.Steps[r.By].Name == outside:
			which = "the outside"
		}
		reach[which] = append(reach[which], lib.String())
	}
	var wins []string
	for _, which := range []string{"the Service", "the outside", "neither"} {
		switch libraries := reach[which]; len(libraries) {
		case 0:
		case 1:
			wins = append(wins, libraries[0]+" reaches "+which)
		default:
			wins = append(wins, enumerate(libraries, "and", 3)+" reach "+which)
		}
	}
	l.report(p, DM1006, finding.Finding{
		Message: fmt.Sprintf("%q is Service %s and also %s outside the cluster: %s",
			l.host, objectName(s), strings.TrimSuffix(outside, "."), strings.Join(wins, ", ")),
		Evidence: []finding.Evidence{walk(l.result(resolve.Glibc))},
		Related:  []finding.Object{objectOf(s)},
		Fix: &finding.Fix{
			Summary: fmt.Sprintf("use %s, or %s with its final dot",
				fqdn(s.Name, s.Namespace, p.Facts().Domain), outside),
			Commands: []string{explain(DM1006)},
		},
	})
	return true
}
