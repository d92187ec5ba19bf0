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

// DM1005 is a name that an old CoreDNS answers from an alias above it.
var DM1005 = &finding.Code{
	ID:       "DM1005",
	Severity: finding.Warning,
	Title:    "an old CoreDNS answers names below an alias with the alias",
	Doc: `CoreDNS before 1.11.0 answers a query for a name below an ExternalName Service with that Service's alias
(coredns#6161; from 1.10.1 only for names of three labels and more: coredns#5733). Where namespace default holds an ExternalName
Service nginx, nginx2.nginx asked by a pod of default becomes nginx2.nginx.default.svc.cluster.local and reaches the
target of the alias, not Service nginx2 in namespace nginx. An alias named com captures www.google.com in the same way.

To mend it, update CoreDNS to 1.11.0 or later, rename the alias, or use full names with a final dot:

    kubectl get svc -A --field-selector spec.type=ExternalName`,
}

// belowExternalName reports DM1005 for a reference.
func belowExternalName(p *diagnose.Pass, l *lookup) bool {
	r := l.result(resolve.Glibc)
	i := slices.IndexFunc(r.Steps, func(s resolve.Step) bool {
		return s.Answer.Match.Captured || s.Answer.Known && s.Answer.HasAddress()
	})
	// What the target of the alias answers need not be known: the name that was meant is not asked for any more.
	if i < 0 || !r.Steps[i].Answer.Match.Captured {
		return false
	}
	m := r.Steps[i].Answer.Match
	l.report(p, DM1005, finding.Finding{
		Message: fmt.Sprintf("%q is answered by alias %s/%s: CoreDNS %s answers every name below an alias",
			l.host, m.Namespace, m.Service, p.Facts().DNS.Version),
		Evidence: []finding.Evidence{walk(r)},
		Related:  []finding.Object{{Kind: "Service", Namespace: m.Namespace, Name: m.Service}},
		Fix: &finding.Fix{
			Summary:  "update CoreDNS to 1.11.0 or later, or use the full name with a final dot",
			Commands: []string{explain(DM1005)},
		},
	})
	return true
}

// capturingAliases reports DM1005 without any reference.
var capturingAliases = &diagnose.Analyzer{
	Name:  "capturing-aliases",
	Doc:   "aliases that an old CoreDNS also answers for names below them",
	Needs: []cluster.Resource{cluster.Services},
	Uses: []cluster.Resource{
		cluster.Namespaces, cluster.EndpointSlices, cluster.Pods, cluster.ConfigMaps, cluster.Nodes, cluster.ServiceEntries, cluster.Texts,
	},
	Codes: []*finding.Code{DM1005},
	Run:   belowAliases,
}

// belowAliases reports DM1005 for every alias named like a namespace or like a top-level domain. An alias that captures
// a name which a workload refers to is left out: belowExternalName says so of the workload.
func belowAliases(p *diagnose.Pass) {
	dns := p.Facts().DNS
	if dns == nil || dns.Implementation != cluster.CoreDNS {
		return
	}
	if v, ok := resolve.ParseVersion(dns.Version); !ok || !v.Before(1, 11, 0) {
		return
	}
	model := model(p.View)
	reported := map[finding.Object]bool{}
	for _, c := range clients(p) {
		for _, l := range c.lookups {
			if r := l.result(resolve.Glibc); r.By >= 0 && r.Steps[r.By].Answer.Match.Captured {
				m := r.Steps[r.By].Answer.Match
				reported[finding.Object{Kind: "Service", Namespace: m.Namespace, Name: m.Service}] = true
			}
		}
	}
	for _, s := range p.Index().Aliases() {
		if reported[objectOf(s)] {
			continue
		}
		owner := resolve.ServiceName(s.Namespace, s.Name, p.Facts().Domain)
		var shown []string
		try := func(front string) {
			if model.Answer(front + "." + owner).Match.Captured {
				shown = append(shown, front+"."+s.Name)
			}
		}
		if p.Index().HasNamespace(s.Name) {
			for _, other := range p.Index().ServicesIn(s.Name) {
				before := len(shown)
				try(other.Name)
				if len(shown) == before {
					// From 1.10.1 only longer names are captured, such as those of the members of a headless Service.
					try(other.Name + "-0." + other.Name)
				}
			}
		}
		if isTopLevel(s.Name) {
			try("www.example")
		}
		if len(shown) == 0 {
			continue
		}
		p.Report(DM1005, finding.Finding{
			Object: objectOf(s),
			Message: fmt.Sprintf("%q answers for names below it: pods of %s that ask for %s reach %s",
				s.Name, s.Namespace, enumerate(shown, "or", 3), strings.TrimSuffix(s.Spec.ExternalName, ".")),
			Evidence: []finding.Evidence{
				{Label: "captured", Text: enumerate(shown, "and", 8)},
				{Label: "because", Text: "CoreDNS " + dns.Version + " answers names below an ExternalName Service; 1.11.0 does not"},
			},
			Fix: &finding.Fix{
				Summary:  "update CoreDNS to 1.11.0 or later, or rename the alias",
				Commands: []string{explain(DM1005)},
			},
		})
	}
}
