package checks

import (
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
	corev1 "k8s.io/api/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/reference"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// references judges every host name that a workload uses. One look-up gives at most one finding: the verdicts are asked
// in order, the most specific first, and the first that speaks ends it.
var references = &diagnose.Analyzer{
	Name: "references",
	Doc:  "host names in environment variables, arguments and ConfigMaps of workloads, resolved as their pods would",
	Needs: []cluster.Resource{
		cluster.Services, cluster.Pods,
	},
	Uses: []cluster.Resource{
		cluster.Namespaces, cluster.EndpointSlices, cluster.ConfigMaps, cluster.Nodes, cluster.ServiceEntries, cluster.Texts,
	},
	Codes: []*finding.Code{DM1001, DM1002, DM1004, DM1005, DM1006, DM1007, DM1008, DM1009, DM1011},
	Run: func(p *diagnose.Pass) {
		if p.Facts().DNS == nil {
			p.Skip(noServer)
			return
		}
		all := clients(p)
		for i, c := range all {
			c.judge(p, []verdict{
				belowExternalName, namespaceAliases, namespaceNode, capturedName, ambiguousName, ndotsTooLow, noSuchName,
				otherClusterDomain,
			})
			// Workloads of one configuration follow each other. What their look-ups gave is by far the most that an
			// analysis would hold in memory.
			if i+1 == len(all) || all[i+1].config != c.config {
				clear(c.config.results)
			}
		}
	},
}

// noServer is why nothing can be said of look-ups in a cluster that shows no DNS server.
const noServer = "no DNS server of the cluster was found"

// outsideNames judges the names that an upstream is known to answer, as a pod with a known resolv.conf would look them
// up: what the cluster puts in their way.
var outsideNames = &diagnose.Analyzer{
	Name: "outside-names",
	Doc:  "names that a given upstream Corefile answers, looked up with a given resolv.conf",
	Uses: []cluster.Resource{
		cluster.Texts, cluster.Services, cluster.Namespaces, cluster.EndpointSlices, cluster.Pods, cluster.ConfigMaps, cluster.Nodes,
	},
	Codes: []*finding.Code{DM1001, DM1002, DM1004, DM1006, DM1009},
	Run: func(p *diagnose.Pass) {
		all := textClients(p)
		if len(all) == 0 {
			p.Idle()
		}
		for _, c := range all {
			c.judge(p, []verdict{namespaceAliases, namespaceNode, capturedName, ambiguousName})
		}
	},
}

// verdict reports a look-up if it has something to say about it, and tells whether it did.
type verdict func(*diagnose.Pass, *lookup) bool

// judge asks the verdicts in order about every look-up of the client, and counts the cost of those that none speaks for.
func (c *client) judge(p *diagnose.Pass, verdicts []verdict) {
	var outside []*lookup
	for _, l := range c.lookups {
		if meetsService(p, l) {
			continue
		}
		judged := slices.ContainsFunc(verdicts, func(judge verdict) bool { return judge(p, l) })
		if !judged && isOutside(p, l) {
			outside = append(outside, l)
		}
	}
	searchCost(p, c, outside)
}

// report adds a finding about a look-up. A reference that is only likely to be a host name is no proof of an error.
func (l *lookup) report(p *diagnose.Pass, code *finding.Code, f finding.Finding) {
	f.Object = l.client.object
	used := slices.Clone(l.used)
	if l.more {
		used = append(used, finding.Evidence{Label: "used in", Text: "more places"})
	}
	f.Evidence = append(used, f.Evidence...)
	if f.Severity == 0 {
		f.Severity = code.Severity
	}
	if l.strength < reference.Certain && f.Severity == finding.Error {
		f.Severity = finding.Warning
	}
	if command := l.traceCommand(); command != "" && f.Fix != nil {
		fix := *f.Fix
		fix.Commands = append([]string{command}, fix.Commands...)
		f.Fix = &fix
	}
	p.Report(code, f)
}

// traceCommand is the command that shows the look-up query by query; empty for clients that it does not take, and where a
// name cannot stand in a command as it is.
func (l *lookup) traceCommand() string {
	o := l.client.object
	word := map[string]string{
		"Pod": "pod", "Deployment": "deploy", "StatefulSet": "sts", "DaemonSet": "ds", "ReplicaSet": "rs", "Job": "job", "CronJob": "cronjob",
	}[o.Kind]
	if word == "" || !isPlain(l.host, o.Name, o.Namespace) {
		return ""
	}
	return "kubectl dnsmesh trace " + l.host + " --from " + word + "/" + o.Name + " -n " + o.Namespace
}

// isTopLevel tells whether a label is a public top-level domain: a suffix that ICANN manages.
func isTopLevel(label string) bool {
	suffix, icann := publicsuffix.PublicSuffix(label)
	return icann && suffix == label
}

// lastLabel is the last label of the host.
func (l *lookup) lastLabel() string {
	labels := l.labels()
	return labels[len(labels)-1]
}

// isOutside tells whether the look-up is meant for a name outside the cluster.
func isOutside(p *diagnose.Pass, l *lookup) bool {
	if l.dots() == 0 || strings.HasSuffix(l.host, ".") {
		return false
	}
	name, err := resolve.Absolute(l.host)
	if err != nil || resolve.Under(name, p.Facts().Domain) || l.lastLabel() == "svc" {
		return false
	}
	r := l.result(resolve.Glibc)
	if len(r.Steps) == 0 {
		return false
	}
	// The answers before the name itself are all negative, or the look-up belongs to the cluster.
	bare := slices.IndexFunc(r.Steps, func(s resolve.Step) bool { return s.Bare })
	if bare < 0 {
		return false
	}
	return isTopLevel(l.lastLabel()) || r.Steps[bare].Answer.HasAddress()
}

// meetsService tells at little cost that a look-up is what most are: a Service with a cluster IP under its own name, with
// an ndots that lets the search list complete it. No verdict has anything to say about such a look-up.
func meetsService(p *diagnose.Pass, l *lookup) bool {
	c := l.client
	if l.dots() >= c.config.NDots || strings.HasSuffix(l.host, ".") || len(c.config.Search) < 3 ||
		c.config.Search[0] != c.namespace+".svc."+p.Facts().Domain {
		return false
	}
	namespace, name := c.namespace, l.host
	if rest, inside := strings.CutSuffix(l.host+".", ".svc."+p.Facts().Domain); inside {
		name = rest
	}
	switch svc, ns, several := strings.Cut(name, "."); {
	case several && (strings.Contains(ns, ".") || isTopLevel(ns) || p.Index().Service(namespace, ns) != nil || len(c.config.server.KnownOutsideNames()) > 0):
		return false
	case several:
		namespace, name = ns, svc
	case name != l.host:
		return false // NAMESPACE.svc.DOMAIN
	}
	s := p.Index().Service(namespace, name)
	return s != nil && s.Spec.Type != corev1.ServiceTypeExternalName && s.Spec.ClusterIP != corev1.ClusterIPNone
}
