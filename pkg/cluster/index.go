package cluster

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// Index finds the objects of a snapshot by name. Each table is made when it is first asked for, once, in time that grows
// with the number of objects; a look-up costs the logarithm of the number in one namespace. It is safe for use by several
// goroutines. What it returns belongs to the snapshot and is not to be changed.
type Index struct {
	s          *Snapshot
	namespaces func() namespaceTable
	// services and external are by namespace, each group by name; named is by name, each group by namespace.
	services func() map[string][]*corev1.Service
	external func() map[string][]*corev1.Service
	named    func() map[string][]*corev1.Service
	aliases  func() []*corev1.Service
	// slices are by namespace, each group by Service and name.
	slices func() map[string][]*discoveryv1.EndpointSlice
	pods   func() map[podAddress]bool

	// converted holds what models were told about a Service: they ask for the same ones over and over.
	mu        sync.Mutex
	converted map[*corev1.Service]resolve.Service
}

type namespaceTable struct {
	names  []string
	byName map[string]*corev1.Namespace
}

type podAddress struct {
	namespace string
	address   netip.Addr
}

// NewIndex returns an index of s, which must not change afterwards.
func NewIndex(s *Snapshot) *Index {
	ix := &Index{s: s, converted: map[*corev1.Service]resolve.Service{}}
	ix.namespaces = sync.OnceValue(func() namespaceTable { return collectNamespaces(s) })
	namespaceOf := func(svc *corev1.Service) string { return svc.Namespace }
	ix.services = sync.OnceValue(func() map[string][]*corev1.Service { return group(s.Services, namespaceOf, compareServices) })
	ix.external = sync.OnceValue(func() map[string][]*corev1.Service {
		var list []*corev1.Service
		for _, svc := range s.Services {
			if svc.Spec.Type == corev1.ServiceTypeExternalName {
				list = append(list, svc)
			}
		}
		return group(list, namespaceOf, compareServices)
	})
	ix.named = sync.OnceValue(func() map[string][]*corev1.Service {
		return group(s.Services, func(svc *corev1.Service) string { return svc.Name }, compareServices)
	})
	ix.aliases = sync.OnceValue(func() []*corev1.Service {
		var list []*corev1.Service
		for _, namespace := range sortedKeys(ix.external()) {
			list = append(list, ix.external()[namespace]...)
		}
		return list
	})
	ix.slices = sync.OnceValue(func() map[string][]*discoveryv1.EndpointSlice {
		return group(s.EndpointSlices, func(e *discoveryv1.EndpointSlice) string { return e.Namespace },
			func(a, b *discoveryv1.EndpointSlice) int {
				return compareMeta(a.Labels[discoveryv1.LabelServiceName], a.Name, b.Labels[discoveryv1.LabelServiceName], b.Name)
			})
	})
	ix.pods = sync.OnceValue(func() map[podAddress]bool {
		table := make(map[podAddress]bool, len(s.Pods))
		for _, p := range s.Pods {
			// CoreDNS watches no pods that have ended (plugin/kubernetes/controller.go).
			if p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed {
				continue
			}
			for _, ip := range p.IPs {
				if a, err := netip.ParseAddr(ip); err == nil {
					table[podAddress{p.Namespace, a}] = true
				}
			}
		}
		return table
	})
	return ix
}

// collectNamespaces returns all namespaces, and where they were not all read also those that any object is in and those
// that every cluster has.
func collectNamespaces(s *Snapshot) namespaceTable {
	t := namespaceTable{byName: make(map[string]*corev1.Namespace, len(s.Namespaces))}
	for _, n := range s.Namespaces {
		t.byName[n.Name] = n
	}
	if !namespacesComplete(s) {
		add := func(name string) {
			if _, ok := t.byName[name]; !ok && name != "" {
				t.byName[name] = nil
			}
		}
		for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
			add(name)
		}
		for _, o := range s.Services {
			add(o.Namespace)
		}
		for _, o := range s.EndpointSlices {
			add(o.Namespace)
		}
		for _, o := range s.ConfigMaps {
			add(o.Namespace)
		}
		for _, o := range s.Pods {
			add(o.Namespace)
		}
		for _, o := range s.Templates {
			add(o.Object.Namespace)
		}
	}
	t.names = slices.Sorted(maps.Keys(t.byName))
	return t
}

func namespacesComplete(s *Snapshot) bool { return s.Known(Namespaces) && !s.Partial }

// NamespacesComplete tells whether a namespace that the index does not know does not exist.
func (ix *Index) NamespacesComplete() bool { return namespacesComplete(ix.s) }

// HasNamespace tells whether a namespace exists: it was read or, where not all were, an object is in it.
func (ix *Index) HasNamespace(name string) bool {
	_, ok := ix.namespaces().byName[name]
	return ok
}

// Namespace returns the namespace of a name; nil where it was not read, even if HasNamespace knows it.
func (ix *Index) Namespace(name string) *corev1.Namespace { return ix.namespaces().byName[name] }

// NamespaceNames returns the names of all namespaces, sorted.
func (ix *Index) NamespaceNames() []string { return ix.namespaces().names }

// Service returns a Service by name, or nil.
func (ix *Index) Service(namespace, name string) *corev1.Service {
	list := ix.services()[namespace]
	i, ok := slices.BinarySearchFunc(list, name, func(svc *corev1.Service, name string) int { return strings.Compare(svc.Name, name) })
	if !ok {
		return nil
	}
	return list[i]
}

// ServicesIn returns the Services of a namespace, by name.
func (ix *Index) ServicesIn(namespace string) []*corev1.Service { return ix.services()[namespace] }

// ServicesNamed returns the Services of a name, by namespace.
func (ix *Index) ServicesNamed(name string) []*corev1.Service { return ix.named()[name] }

// ExternalNames returns the Services of a namespace that are of type ExternalName, by name.
func (ix *Index) ExternalNames(namespace string) []*corev1.Service { return ix.external()[namespace] }

// Aliases returns all Services of type ExternalName, by namespace and name.
func (ix *Index) Aliases() []*corev1.Service { return ix.aliases() }

// EndpointSlices returns those of a Service, by name.
func (ix *Index) EndpointSlices(namespace, service string) []*discoveryv1.EndpointSlice {
	list := ix.slices()[namespace]
	// limit finds where the slices of the Service start, and where those behind them do.
	limit := func(equal int) int {
		i, _ := slices.BinarySearchFunc(list, service, func(e *discoveryv1.EndpointSlice, service string) int {
			return cmp.Or(strings.Compare(e.Labels[discoveryv1.LabelServiceName], service), equal)
		})
		return i
	}
	start, end := limit(1), limit(-1)
	return list[start:end:end]
}

// Endpoints returns the endpoints of a Service, ready or not, of all its EndpointSlices and both families of
// addresses, and whether those are all: a selection of objects that holds none of a Service's EndpointSlices says
// nothing. An endpoint that several slices hold is ready if one of them
// says so.
func (ix *Index) Endpoints(namespace, service string) (list []resolve.Endpoint, known bool) {
	type identity struct {
		address  netip.Addr
		hostname string
	}
	seen := map[identity]int{}
	found := ix.EndpointSlices(namespace, service)
	for _, slice := range found {
		var ports []resolve.Port
		for _, p := range slice.Ports {
			port := resolve.Port{Protocol: string(corev1.ProtocolTCP)}
			if p.Name != nil {
				port.Name = *p.Name
			}
			if p.Protocol != nil {
				port.Protocol = string(*p.Protocol)
			}
			ports = append(ports, port)
		}
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			for _, text := range e.Addresses {
				addr, err := netip.ParseAddr(text)
				if err != nil {
					continue // the address type FQDN
				}
				end := resolve.Endpoint{Address: addr, Ready: e.Conditions.Ready == nil || *e.Conditions.Ready, Ports: ports}
				if e.Hostname != nil {
					end.Hostname = *e.Hostname
				}
				if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
					end.Pod = e.TargetRef.Name
				}
				id := identity{addr, end.Hostname}
				if at, ok := seen[id]; ok {
					list[at].Ready = list[at].Ready || end.Ready
					for _, p := range ports {
						if !slices.Contains(list[at].Ports, p) {
							list[at].Ports = append(slices.Clip(list[at].Ports), p)
						}
					}
					continue
				}
				seen[id] = len(list)
				list = append(list, end)
			}
		}
	}
	return list, len(found) > 0 || ix.s.Known(EndpointSlices) && !ix.s.Partial
}

// HasPod tells whether a pod of the namespace that has not ended has the address, and whether pods are known at all.
func (ix *Index) HasPod(namespace string, address netip.Addr) (has, known bool) {
	return ix.pods()[podAddress{namespace, address}], ix.s.Known(Pods) && !ix.s.Partial
}

// group splits a list by key and sorts each group. All groups share one array.
func group[T any](list []T, key func(T) string, compare func(a, b T) int) map[string][]T {
	count := map[string]int{}
	for _, t := range list {
		count[key(t)]++
	}
	array := make([]T, 0, len(list))
	groups := make(map[string][]T, len(count))
	for k, n := range count {
		start := len(array)
		array = array[:start+n]
		groups[k] = array[start : start : start+n]
	}
	for _, t := range list {
		k := key(t)
		groups[k] = append(groups[k], t)
	}
	for _, g := range groups {
		slices.SortFunc(g, compare)
	}
	return groups
}

// Names returns the index in the form that models of DNS servers ask.
func (ix *Index) Names() resolve.Names { return names{ix} }

type names struct{ ix *Index }

func (n names) HasNamespace(namespace string) bool { return n.ix.HasNamespace(namespace) }

func (n names) Namespaces() iter.Seq[string] { return slices.Values(n.ix.NamespaceNames()) }

// Service also knows default/kubernetes, which the API server keeps in every cluster, where only a selection of objects
// was read.
func (n names) Service(namespace, name string) (resolve.Service, bool) {
	if svc := n.ix.Service(namespace, name); svc != nil {
		return n.ix.convert(svc), true
	}
	if namespace == "default" && name == "kubernetes" && n.ix.s.Partial {
		return resolve.Service{Namespace: namespace, Name: name, Ports: []resolve.Port{{Name: "https", Protocol: "TCP"}}, EndpointsUnknown: true}, true
	}
	return resolve.Service{}, false
}

func (n names) Services(namespace string) iter.Seq[resolve.Service] {
	return n.ix.convertAll(n.ix.ServicesIn(namespace))
}

func (n names) ExternalNames(namespace string) iter.Seq[resolve.Service] {
	return n.ix.convertAll(n.ix.ExternalNames(namespace))
}

func (n names) HasPod(namespace string, address netip.Addr) (has, known bool) {
	return n.ix.HasPod(namespace, address)
}

func (ix *Index) convertAll(list []*corev1.Service) iter.Seq[resolve.Service] {
	return func(yield func(resolve.Service) bool) {
		for _, svc := range list {
			if !yield(ix.convert(svc)) {
				return
			}
		}
	}
}

// maxConverted bounds how many Services an index remembers for the models.
const maxConverted = 1 << 11

// convert returns what DNS servers read of a Service.
func (ix *Index) convert(svc *corev1.Service) resolve.Service {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	s, ok := ix.converted[svc]
	if !ok {
		if len(ix.converted) >= maxConverted {
			clear(ix.converted)
		}
		s = ix.describe(svc)
		ix.converted[svc] = s
	}
	return s
}

func (ix *Index) describe(svc *corev1.Service) resolve.Service {
	s := resolve.Service{Namespace: svc.Namespace, Name: svc.Name}
	for _, p := range svc.Spec.Ports {
		port := resolve.Port{Name: p.Name, Protocol: string(p.Protocol)}
		if port.Protocol == "" {
			port.Protocol = string(corev1.ProtocolTCP)
		}
		s.Ports = append(s.Ports, port)
	}
	switch {
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		s.Kind, s.Target = resolve.ExternalName, svc.Spec.ExternalName
		return s
	case svc.Spec.ClusterIP == corev1.ClusterIPNone:
		s.Kind = resolve.Headless
	default:
		s.Addresses = clusterIPs(svc)
	}
	var known bool
	s.Endpoints, known = ix.Endpoints(svc.Namespace, svc.Name)
	s.EndpointsUnknown = !known
	return s
}
