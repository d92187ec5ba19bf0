// Package clustergen makes the objects of a cluster of any size, for tests and benchmarks: as a file in the form that
// kubectl prints, or written to a real API server.
//
// Equal seeds and sizes give equal objects. They are made one by one while they are iterated over, so that a cluster of
// 200,000 pods costs no more memory than its plan. The cluster is healthy but for the faults that Faults lists: it is also
// a test that nothing else is reported.
package clustergen

import (
	"fmt"
	"iter"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Size is how many objects a cluster has. The DNS server, the nodes, the ConfigMaps and the faults come on top of it.
type Size struct {
	Namespaces int
	// Services counts the aliases too.
	Services int
	// Aliases are the Services of type ExternalName.
	Aliases int
	// EndpointSlices is the number of Services that have endpoints, each with one slice.
	EndpointSlices int
	Pods           int
}

// Scale returns the size of the cluster that the project's bounds on time and memory are stated for, times factor.
func Scale(factor float64) Size {
	n := func(v float64) int { return max(1, int(v*factor+0.5)) }
	return Size{
		Namespaces: n(500), Services: n(10_000), Aliases: n(1_000), EndpointSlices: n(8_000), Pods: n(20_000),
	}
}

// Cluster is the plan of a cluster. It is not changed after New, so that several goroutines may iterate over it.
type Cluster struct {
	seed       uint64
	size       Size
	namespaces []string
	workloads  []*workload
	services   []*service
	// inNamespace holds the Services that a workload can call by their names alone, by namespace.
	inNamespace map[string][]*service
	// callable are all Services that are no aliases.
	callable []*service
	pods     int
	nodes    int
}

// workload is what owns pods.
type workload struct {
	kind            string // Deployment, StatefulSet or CronJob
	namespace, name string
	// index counts workloads, first the pods before those of this one.
	index, first, pods int
}

// service is a Service, with or without endpoints.
type service struct {
	namespace, name string
	index           int
	// backend is nil for aliases, and for Services whose workload was scaled to nothing.
	backend *workload
	// endpoints is how many pods of the backend are behind the Service.
	endpoints int
	headless  bool
	// target is the external name of an alias.
	target string
}

// New plans a cluster.
func New(seed uint64, size Size) *Cluster {
	c := &Cluster{seed: seed, size: size, inNamespace: map[string][]*service{}, nodes: max(3, size.Pods/100)}
	areas := []string{"payments", "orders", "catalog", "search", "identity", "shipping", "billing", "media", "reports", "edge"}
	for i := range size.Namespaces {
		c.namespaces = append(c.namespaces, fmt.Sprintf("%s-%03d", areas[i%len(areas)], i))
	}
	c.planWorkloads()
	c.planServices()
	return c
}

// planWorkloads gives the pods to workloads of 1 to 19 pods each.
func (c *Cluster) planWorkloads() {
	r := c.random(1)
	roles := []string{"api", "web", "worker", "auth", "cache", "ledger-writer", "scheduler", "exporter", "sync", "gateway"}
	for c.pods < c.size.Pods {
		i := len(c.workloads)
		w := &workload{
			kind: "Deployment", namespace: c.namespaces[i%len(c.namespaces)],
			name:  fmt.Sprintf("%s-%d", roles[r.IntN(len(roles))], i/len(c.namespaces)),
			index: i, first: c.pods, pods: min(1+r.IntN(19), c.size.Pods-c.pods),
		}
		switch r.IntN(12) {
		case 0:
			w.kind, w.name = "StatefulSet", fmt.Sprintf("db-%d", i/len(c.namespaces))
		case 1:
			if i > 0 { // the first one serves, so that there is something to call
				w.kind, w.name = "CronJob", fmt.Sprintf("cleanup-%d", i/len(c.namespaces))
			}
		}
		c.workloads = append(c.workloads, w)
		c.pods += w.pods
	}
}

// planServices gives every serving workload its Services in turn, until there are enough with endpoints; then come
// Services without endpoints, and the aliases. All pods of a workload are behind its first Service, and a leader or a
// pair behind the others: a pod stands in between one and two slices, as in clusters where most workloads have one Service.
func (c *Cluster) planServices() {
	var serving []*workload
	for _, w := range c.workloads {
		if w.kind != "CronJob" {
			serving = append(serving, w)
		}
	}
	suffixes := []string{"", "-metrics", "-grpc", "-admin", "-internal", "-canary", "-debug"}
	add := func(s *service) {
		s.index = len(c.services)
		c.services = append(c.services, s)
		if s.target == "" {
			c.callable = append(c.callable, s)
		}
		c.inNamespace[s.namespace] = append(c.inNamespace[s.namespace], s)
	}
	for i := range c.size.EndpointSlices {
		w, round := serving[i%len(serving)], i/len(serving)
		suffix, endpoints := fmt.Sprintf("-%d", round), min(w.pods, 1+i%2)
		if round < len(suffixes) {
			suffix = suffixes[round]
		}
		if round == 0 {
			endpoints = w.pods
		}
		add(&service{
			namespace: w.namespace, name: w.name + suffix, backend: w, endpoints: endpoints,
			headless: round == 0 && w.kind == "StatefulSet",
		})
	}
	for i := range c.size.Services - c.size.Aliases - c.size.EndpointSlices {
		add(&service{namespace: c.namespaces[i%len(c.namespaces)], name: fmt.Sprintf("parked-%d", i/len(c.namespaces))})
	}
	r := c.random(2)
	for i := range c.size.Aliases {
		target := fmt.Sprintf("db-%d.eu.example.org", r.IntN(200))
		if r.IntN(10) < 7 {
			target = c.callable[r.IntN(len(c.callable))].fqdn()
		}
		add(&service{namespace: c.namespaces[i%len(c.namespaces)], name: fmt.Sprintf("legacy-%d", i/len(c.namespaces)), target: target})
	}
}

func (s *service) fqdn() string { return s.name + "." + s.namespace + ".svc.cluster.local" }

// random returns the random numbers of one purpose, always the same ones.
func (c *Cluster) random(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(c.seed, purpose)) }

// Namespaces iterates over the namespaces, those of the system included.
func (c *Cluster) Namespaces() iter.Seq[*corev1.Namespace] {
	return func(yield func(*corev1.Namespace) bool) {
		for _, name := range append(systemNamespaces(), c.namespaces...) {
			if !yield(namespace(name)) {
				return
			}
		}
	}
}

// Nodes iterates over the nodes.
func (c *Cluster) Nodes() iter.Seq[*corev1.Node] {
	return func(yield func(*corev1.Node) bool) {
		for i := range c.nodes {
			if !yield(node(i)) {
				return
			}
		}
	}
}

// Services iterates over the Services.
func (c *Cluster) Services() iter.Seq[*corev1.Service] {
	return func(yield func(*corev1.Service) bool) {
		for _, s := range append(systemServices(), faultServices()...) {
			if !yield(s) {
				return
			}
		}
		for _, s := range c.services {
			if !yield(s.object()) {
				return
			}
		}
	}
}

// EndpointSlices iterates over the slices of the Services that have endpoints.
func (c *Cluster) EndpointSlices() iter.Seq[*discoveryv1.EndpointSlice] {
	return func(yield func(*discoveryv1.EndpointSlice) bool) {
		for _, s := range systemSlices() {
			if !yield(s) {
				return
			}
		}
		for _, s := range c.services {
			if s.backend != nil && !yield(c.slice(s)) {
				return
			}
		}
	}
}

// ConfigMaps iterates over the Corefile, the certificates that a controller puts into every namespace, and the settings of
// a third of the workloads.
func (c *Cluster) ConfigMaps() iter.Seq[*corev1.ConfigMap] {
	return func(yield func(*corev1.ConfigMap) bool) {
		if !yield(corefile()) {
			return
		}
		for _, name := range append(systemNamespaces(), c.namespaces...) {
			if !yield(rootCertificate(name)) {
				return
			}
		}
		for _, w := range c.workloads {
			if w.configured() && !yield(c.settings(w)) {
				return
			}
		}
	}
}

// Pods iterates over the pods, with their status.
func (c *Cluster) Pods() iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) {
		for _, p := range append(systemPods(), faultPods()...) {
			if !yield(p) {
				return
			}
		}
		for _, w := range c.workloads {
			spec := c.template(w)
			for i := range w.pods {
				if !yield(c.pod(w, i, spec)) {
					return
				}
			}
		}
	}
}
