package checks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/reference"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// client is a workload that refers to names, with the configuration its resolver reads.
type client struct {
	object    finding.Object
	namespace string
	config    *clientConfig
	lookups   []*lookup
	byHost    map[string]*lookup
}

// clientConfig is a resolver configuration that many clients share, with the look-ups made under it.
type clientConfig struct {
	resolve.Config
	server  *cluster.Model
	results map[resultKey]resolve.Result
}

type resultKey struct {
	library resolve.Library
	host    string
}

// lookup is one host that a client refers to, from one or more places.
type lookup struct {
	client *client
	// host is as it was written, lower case: with a final dot where it has one.
	host string
	refs []reference.Reference
	// used says where references stand, for the first maxPlaces of them; more that there are others.
	used []finding.Evidence
	more bool
	// strength is that of the surest reference.
	strength reference.Strength
}

// result is how the look-up goes with a resolver. The newest version of each library that was measured is taken.
func (l *lookup) result(lib resolve.Library) resolve.Result {
	c := l.client.config
	key := resultKey{lib, l.host}
	r, ok := c.results[key]
	if !ok {
		r = resolve.Walk(resolve.Resolver{Library: lib}, c.Config, l.host, c.server.Answer)
		c.results[key] = r
	}
	return r
}

// dots counts the dots that ndots is compared with.
func (l *lookup) dots() int { return strings.Count(strings.TrimSuffix(l.host, "."), ".") }

// labels are those of the host, without a final dot.
func (l *lookup) labels() []string { return strings.Split(strings.TrimSuffix(l.host, "."), ".") }

// canAlias tells whether a Service of that name in the client's namespace would answer the look-up: the host has one
// label, and the search list leads to the namespace.
func (l *lookup) canAlias(domain string) bool {
	c := l.client
	return c.namespace != "" && l.dots() == 0 && !strings.HasSuffix(l.host, ".") && c.config.NDots > 0 &&
		slices.Contains(c.config.Search, c.namespace+".svc."+domain)
}

// ports are the ports at which the host is used, those that a URL's scheme implies included; sorted, each once.
func (l *lookup) ports() []int {
	var ports []int
	for _, r := range l.refs {
		if p := portOf(r); p != 0 {
			ports = append(ports, p)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// portOf is the port of a reference, or that of its scheme, or 0.
func portOf(r reference.Reference) int {
	if r.Port != 0 {
		return r.Port
	}
	switch r.Scheme {
	case "http", "ws":
		return 80
	case "https", "wss":
		return 443
	case "postgres", "postgresql":
		return 5432
	case "mysql", "mariadb":
		return 3306
	case "redis":
		return 6379
	case "rediss":
		return 6380
	case "amqp":
		return 5672
	case "amqps":
		return 5671
	case "mongodb":
		return 27017
	case "nats":
		return 4222
	case "ldap":
		return 389
	case "ldaps":
		return 636
	case "smtp":
		return 25
	}
	return 0
}

type clientsKey struct{}

// clients returns every workload that refers to a name, with its look-ups, in a stable order. Workloads that ask
// another server than the cluster's are left out: nothing is known about its answers.
func clients(p *diagnose.Pass) []*client {
	return diagnose.Memo(p.View, clientsKey{}, func(v *diagnose.View) []*client {
		if v.Facts().DNS == nil {
			return nil
		}
		b := builder{view: v, facts: v.Facts(), server: model(v), configs: map[string]*clientConfig{}}
		var all []*client
		for _, w := range v.Workloads() {
			c := b.workload(w)
			if c == nil {
				continue
			}
			// Templates of one workload follow each other: old and new in the middle of a rollout.
			if n := len(all); n > 0 && all[n-1].object == c.object && all[n-1].config == c.config {
				all[n-1].join(c)
				continue
			}
			all = append(all, c)
		}
		for _, c := range all {
			slices.SortFunc(c.lookups, func(a, b *lookup) int { return cmp.Compare(a.host, b.host) })
		}
		return all
	})
}

type modelKey struct{}

// model is the model of the cluster's DNS server.
func model(v *diagnose.View) *cluster.Model {
	return diagnose.Memo(v, modelKey{}, func(v *diagnose.View) *cluster.Model {
		return cluster.NewModel(v.Snapshot, v.Facts(), v.Index())
	})
}

type builder struct {
	view    *diagnose.View
	facts   *cluster.Facts
	server  *cluster.Model
	configs map[string]*clientConfig
	finder  *reference.Finder
	maps    map[string]*corev1.ConfigMap
}

// workload returns the client of a workload, or nil where it refers to nothing or asks another server.
func (b *builder) workload(w *cluster.Workload) *client {
	if w.Spec == nil {
		return nil
	}
	if b.finder == nil {
		b.finder = reference.NewFinder(reference.Options{ClusterDomain: b.facts.Domain})
		b.maps = map[string]*corev1.ConfigMap{}
		for _, m := range b.view.Snapshot.ConfigMaps {
			b.maps[m.Namespace+"/"+m.Name] = m
		}
	}
	ns := w.Object.Namespace
	refs := b.finder.Spec(w.Spec, ns, func(name string) *corev1.ConfigMap { return b.maps[ns+"/"+name] })
	refs = reference.Without(refs, b.view.Snapshot.MeshHosts)
	refs = reference.Without(refs, reference.HostAliases(w.Spec))
	if len(refs) == 0 {
		return nil
	}
	cfg, ok := b.config(w)
	if !ok {
		return nil
	}
	c := &client{object: w.Object, namespace: ns, config: cfg, byHost: map[string]*lookup{}}
	for _, r := range refs {
		if r.Host == w.Spec.Hostname || strings.HasSuffix(r.Scheme, "srv") {
			// The pod's own name stands in its hosts file; an SRV look-up asks for other names than the host.
			continue
		}
		l := c.byHost[r.Host]
		if l == nil {
			l = &lookup{host: r.Host}
			c.add(l)
		}
		l.refs = append(l.refs, r)
		l.strength = max(l.strength, r.Strength)
		l.use(finding.Evidence{Label: "used in", Text: usedIn(r)})
	}
	return c
}

func (c *client) add(l *lookup) {
	l.client = c
	c.byHost[l.host] = l
	c.lookups = append(c.lookups, l)
}

// join adds the look-ups of another template of the same workload: what both use is one cause.
func (c *client) join(other *client) {
	for _, l := range other.lookups {
		have := c.byHost[l.host]
		if have == nil {
			c.add(l)
			continue
		}
		have.more = have.more || l.more
		have.refs = append(have.refs, l.refs...)
		have.strength = max(have.strength, l.strength)
		for _, e := range l.used {
			have.use(e)
		}
	}
}

// usedIn says where a reference stands. What stands there is quoted as far as it is no secret: scheme, host and port.
func usedIn(r reference.Reference) string {
	s := r.Origin.String()
	if r.Origin.Kind != reference.Env {
		return s
	}
	value := r.Host
	if r.Port != 0 {
		value += ":" + strconv.Itoa(r.Port)
	}
	if r.Scheme != "" {
		value = r.Scheme + "://" + value
	}
	return s + " (" + value + ")"
}

// maxPlaces is how many places of one name are shown: a file can hold it a thousand times.
const maxPlaces = 16

func (l *lookup) use(e finding.Evidence) {
	switch {
	case slices.Contains(l.used, e):
	case len(l.used) < maxPlaces:
		l.used = append(l.used, e)
	default:
		l.more = true
	}
}

// config returns the resolver configuration of a workload, and false where it does not ask the cluster's server.
func (b *builder) config(w *cluster.Workload) (*clientConfig, bool) {
	key := fmt.Sprintf("%s %s %v %v", w.Object.Namespace, w.Spec.DNSPolicy, w.Spec.HostNetwork, w.Spec.DNSConfig)
	if c, ok := b.configs[key]; ok {
		return c, c != nil
	}
	cfg, ok := cluster.PodConfig(b.view.Snapshot, b.facts, w)
	if !ok {
		b.configs[key] = nil
		return nil, false
	}
	c := &clientConfig{Config: cfg, server: b.server, results: map[resultKey]resolve.Result{}}
	b.configs[key] = c
	return c, true
}

// textClients returns a client for each resolv.conf of a pod that was given as a file. It stands for a pod that uses
// the names which the upstream's Corefile answers, in the shortest form that the search list allows. Where no workload
// is known that could refer to a name, it also uses the names of Services that moved away and left a namespace of that
// name with nothing but aliases.
func textClients(p *diagnose.Pass) []*client {
	facts := p.Facts()
	if facts.DNS == nil {
		return nil
	}
	server := model(p.View)
	var all []*client
	for _, t := range p.Snapshot.Texts {
		if t.Kind != cluster.TextPodResolvConf {
			continue
		}
		cfg, _ := resolve.ParseConfig(t.Name, []byte(t.Data))
		c := &client{
			object:    finding.Object{Kind: "File", Name: t.Name},
			namespace: namespaceOf(cfg.Search, facts.Domain),
			config:    &clientConfig{Config: cfg, server: server, results: map[resultKey]resolve.Result{}},
		}
		hosts := map[string]*lookup{}
		add := func(host string, e finding.Evidence) {
			if hosts[host] == nil { // one place that shows the name is enough
				hosts[host] = &lookup{client: c, host: host, strength: reference.Certain, used: []finding.Evidence{e}}
			}
		}
		for _, k := range server.KnownOutsideNames() {
			at := finding.Position{Source: k.Position.Source, Line: k.Position.Line}
			add(shortest(k.Name, cfg.Search, facts.Domain), finding.Evidence{
				Label: "known from", Text: at.String() + " answers " + strings.TrimSuffix(k.Name, "."), Position: &k.Position,
			})
		}
		if c.namespace != "" && p.Snapshot.Partial && len(p.Workloads()) == 0 {
			for _, ns := range p.Index().NamespaceNames() {
				if moved, _ := movedAway(p, ns); len(moved) > 0 && p.Index().Service(c.namespace, ns) == nil {
					add(ns, finding.Evidence{Label: "known from", Text: objectOf(moved[0]).String()})
				}
			}
		}
		if len(hosts) > 0 {
			c.lookups = slices.SortedFunc(maps.Values(hosts), func(a, b *lookup) int { return cmp.Compare(a.host, b.host) })
			all = append(all, c)
		}
	}
	return all
}

// shortest is an absolute name as a pod would use it: without the search domain outside of the cluster that it ends in.
func shortest(name string, search []string, domain string) string {
	for _, d := range search {
		if short, ok := strings.CutSuffix(name, "."+d); ok && d != "." && !resolve.Under(d, domain) {
			return short
		}
	}
	return strings.TrimSuffix(name, ".")
}

// namespaceOf reads the namespace out of a search list: NAMESPACE.svc.DOMAIN; empty where it holds none.
func namespaceOf(search []string, domain string) string {
	for _, s := range search {
		if ns, ok := strings.CutSuffix(s, ".svc."+domain); ok && !strings.Contains(ns, ".") {
			return ns
		}
	}
	return ""
}

// walk writes a look-up on one line: the names as they are asked, each with its answer.
func walk(r resolve.Result) finding.Evidence {
	parts := make([]string, len(r.Steps))
	for i, s := range r.Steps {
		parts[i] = stepName(s) + " " + s.Answer.String()
	}
	return finding.Evidence{Label: "walk", Text: strings.Join(parts, " → ")}
}

func stepName(s resolve.Step) string {
	switch {
	case s.Unseen:
		return "(search domains of the node)"
	case s.Name == "":
		return "(no valid name)"
	}
	return strings.TrimSuffix(s.Name, ".")
}

// meant lists the Services of that name in other namespaces, as evidence, and returns them.
func meant(p *diagnose.Pass, name, except string) ([]*corev1.Service, []finding.Evidence) {
	var services []*corev1.Service
	for _, s := range p.Index().ServicesNamed(name) {
		if s.Namespace != except {
			services = append(services, s)
		}
	}
	if len(services) == 0 {
		return nil, nil
	}
	names := make([]string, len(services))
	for i, s := range services {
		names[i] = s.Namespace + "/" + s.Name
	}
	return services, []finding.Evidence{{Label: "meant?", Text: "Service " + enumerate(names, "or", 5)}}
}

// enumerate writes a list as people do: "a, b and c". More than limit words are cut to "a, b and 7 more".
func enumerate(words []string, conjunction string, limit int) string {
	if n := len(words); n > limit {
		return strings.Join(words[:limit], ", ") + fmt.Sprintf(" and %d more", n-limit)
	}
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + conjunction + " " + words[last]
}

// explain is the command that says more about a code.
func explain(code *finding.Code) string { return "kubectl dnsmesh explain " + code.ID }

// isPlain tells whether names can stand in a command or in YAML as they are. The API server takes no others for namespaces
// and Services; a file may hold any.
func isPlain(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool {
		return n == "" || n[0] == '-' || strings.Trim(n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") != ""
	})
}

// aliasManifest is an ExternalName Service as YAML; empty where the API server would not take it.
func aliasManifest(namespace, name, target string) string {
	if len(validation.IsDNS1123Label(namespace))+len(validation.IsDNS1123Label(name))+len(validation.IsDNS1123Subdomain(target)) > 0 {
		return ""
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata:
  name: %s
  namespace: %s
spec:
  type: ExternalName
  externalName: %s
`, name, namespace, target)
}

// fqdn is the name of a Service without a final dot, as people write it.
func fqdn(service, namespace, domain string) string {
	return strings.TrimSuffix(resolve.ServiceName(namespace, service, domain), ".")
}

// objectOf names a Service.
func objectOf(s *corev1.Service) finding.Object {
	return finding.Object{Kind: "Service", Namespace: s.Namespace, Name: s.Name}
}
