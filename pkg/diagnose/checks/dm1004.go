package checks

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// DM1003 is a namespace of nothing but aliases whose name is a Service elsewhere.
var DM1003 = &finding.Code{
	ID:       "DM1003",
	Severity: finding.Info,
	Title:    "a namespace holds nothing but aliases and is named like a Service elsewhere",
	Doc: `Every Service of the namespace is an ExternalName Service, and another namespace holds a Service with the
namespace's name. That is what a move to new namespaces leaves behind. As long as the namespace exists, the short name
of that Service reaches the namespace from everywhere else (see DM1001 and DM1002).

To mend it, delete the aliases and the namespace when nobody uses them any more:

    kubectl get svc -n my-app`,
}

// DM1004 is a namespace that captures names of a public top-level domain.
var DM1004 = &finding.Code{
	ID:       "DM1004",
	Severity: finding.Error,
	Title:    "a namespace named like a top-level domain captures names outside the cluster",
	Doc: `With ndots:5 the name google.com is first asked as google.com.svc.cluster.local, which is the Service google in a
namespace com. A namespace named like a top-level domain (com, dev, io, app), or like the private domain of a site, so
captures SERVICE.NAMESPACE for every pod of the cluster, whatever the pod meant.

It is an error where a workload uses such a name and means the outside: its port (443 for a URL with https and no port)
is none of the Service's, or the outside name is known to exist. Else it is a note, because namespaces called dev or app
are common and their short names are mostly meant.

To mend it, write the outside name with a final dot, lower ndots for the workload, or rename the namespace:

    --dashboard=https://grafana.dev./`,
}

// namespaces reports what the names of namespaces mean by themselves, without any reference.
var namespaces = &diagnose.Analyzer{
	Name:  "namespaces",
	Doc:   "names of namespaces that stand in the way of names of Services or of the outside",
	Needs: []cluster.Resource{cluster.Services},
	Uses:  []cluster.Resource{cluster.Namespaces},
	Codes: []*finding.Code{DM1003, DM1004},
	Run: func(p *diagnose.Pass) {
		for _, ns := range p.Index().NamespaceNames() {
			leftOver(p, ns)
			captures(p, ns)
		}
	},
}

// leftOver reports DM1003.
func leftOver(p *diagnose.Pass, ns string) {
	elsewhere, hint := movedAway(p, ns)
	if len(elsewhere) == 0 {
		return
	}
	services := p.Index().ServicesIn(ns)
	aliases := make([]string, len(services))
	for i, s := range services {
		aliases[i] = s.Name + " → " + strings.TrimSuffix(s.Spec.ExternalName, ".")
	}
	hint[0].Label = "same name"
	commands := []string{explain(DM1003)}
	if isPlain(ns) {
		commands = append([]string{"kubectl get svc -n " + ns}, commands...)
	}
	p.Report(DM1003, finding.Finding{
		Object: finding.Object{Kind: "Namespace", Name: ns},
		Message: fmt.Sprintf("%q holds nothing but aliases and is named like Service %s: the short name reaches the namespace",
			ns, objectName(elsewhere[0])),
		Evidence: append(hint, finding.Evidence{Label: "aliases", Text: enumerate(aliases, "and", 6)}),
		Fix: &finding.Fix{
			Summary:  "delete the aliases and the namespace if nobody uses them",
			Commands: commands,
		},
	})
}

// movedAway returns the Services elsewhere that are named like a namespace which holds nothing but aliases, with their
// evidence; none for every other namespace.
func movedAway(p *diagnose.Pass, ns string) ([]*corev1.Service, []finding.Evidence) {
	services := p.Index().ServicesIn(ns)
	if len(services) == 0 || slices.ContainsFunc(services, func(s *corev1.Service) bool { return s.Spec.Type != corev1.ServiceTypeExternalName }) {
		return nil, nil
	}
	return meant(p, ns, ns)
}

func objectName(s *corev1.Service) string { return s.Namespace + "/" + s.Name }

// captures reports DM1004 as a note about a namespace.
func captures(p *diagnose.Pass, ns string) {
	if !isTopLevel(ns) {
		return
	}
	var names []string
	for _, s := range p.Index().ServicesIn(ns) {
		names = append(names, s.Name+"."+ns)
	}
	if len(names) == 0 {
		return
	}
	p.Report(DM1004, finding.Finding{
		Severity: finding.Info,
		Object:   finding.Object{Kind: "Namespace", Name: ns},
		Message:  fmt.Sprintf("%q is also a top-level domain: pods reach its Services where they ask for names outside", ns),
		Evidence: []finding.Evidence{{Label: "captured", Text: enumerate(names, "and", 6)}},
		Fix: &finding.Fix{
			Summary:  "write outside names of this domain with a final dot",
			Commands: []string{explain(DM1004)},
		},
	})
}

// capturedService returns the step at which a look-up of a.b takes Service a in namespace b through the search list,
// and the Service.
func capturedService(p *diagnose.Pass, l *lookup) (resolve.Step, *corev1.Service) {
	if l.dots() != 1 || strings.HasSuffix(l.host, ".") {
		return resolve.Step{}, nil
	}
	labels := l.labels()
	r := l.result(resolve.Glibc)
	if r.By < 0 {
		return resolve.Step{}, nil
	}
	step := r.Steps[r.By]
	m := step.Answer.Match
	if step.Bare || m.Node != resolve.ServiceNode || m.Service != labels[0] || m.Namespace != labels[1] {
		return resolve.Step{}, nil
	}
	return step, p.Index().Service(m.Namespace, m.Service)
}

// capturedName reports DM1004 as an error: a reference that means the outside and reaches a Service.
func capturedName(p *diagnose.Pass, l *lookup) bool {
	step, s := capturedService(p, l)
	if s == nil || !isTopLevel(l.lastLabel()) {
		return false
	}
	reason := meansOutside(l, s)
	if reason == "" {
		return false
	}
	l.report(p, DM1004, finding.Finding{
		Message: fmt.Sprintf("%q means a name outside and reaches Service %s: namespace %s captures it",
			l.host, objectName(s), s.Namespace),
		Evidence: []finding.Evidence{
			walk(l.result(resolve.Glibc)),
			{Label: "because", Text: reason},
		},
		Related: []finding.Object{objectOf(s)},
		Fix: &finding.Fix{
			Summary:  fmt.Sprintf("write %s. with a final dot, or %s if the Service is meant", l.host, strings.TrimSuffix(step.Name, ".")),
			Commands: []string{explain(DM1004)},
		},
	})
	return true
}

// meansOutside says why a reference to a.b means the name outside rather than Service a in namespace b; "" where
// nothing shows it.
func meansOutside(l *lookup, s *corev1.Service) string {
	if a := l.client.config.server.Answer(l.labels()[0] + "." + l.labels()[1] + "."); a.Known && a.HasAddress() {
		return "the upstream answers " + l.host + " too"
	}
	// Only an address of the cluster drops what comes to other ports: an alias or a headless Service has none of its own.
	ports := l.ports()
	if len(ports) == 0 || len(s.Spec.Ports) == 0 || s.Spec.Type == corev1.ServiceTypeExternalName || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return ""
	}
	for _, port := range ports {
		if slices.ContainsFunc(s.Spec.Ports, func(sp corev1.ServicePort) bool { return int(sp.Port) == port }) {
			return ""
		}
	}
	return fmt.Sprintf("it is used with port %d, and the Service has %s", ports[0], servicePorts(s))
}

func servicePorts(s *corev1.Service) string {
	ports := make([]string, len(s.Spec.Ports))
	for i, p := range s.Spec.Ports {
		ports[i] = fmt.Sprint(p.Port)
	}
	if len(ports) == 1 {
		return "port " + ports[0]
	}
	return "ports " + enumerate(ports, "and", 6)
}
