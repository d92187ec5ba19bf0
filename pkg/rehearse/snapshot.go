package rehearse

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/coredns/coredns/plugin/kubernetes"
	"github.com/coredns/coredns/plugin/kubernetes/object"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// placeholder4 and placeholder6 stand for the cluster IPs of Services that have none yet, as in manifests
// (RFC 5737, RFC 3849).
var (
	placeholder4 = netip.AddrFrom4([4]byte{192, 0, 2, 255})
	placeholder6 = netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 0xff})
)

// objects is what the kubernetes plugin otherwise keeps in caches that watch an API server: it has the methods of
// dnsController (plugin/kubernetes/controller.go), and converts objects with the plugin's own functions. There is
// nothing to start, to wait for, or to stop.
type objects struct {
	snapshot *cluster.Snapshot
	index    *cluster.Index
	options  objectOptions

	// Tables that only some questions need.
	services       func() []*object.Service
	servicesByIP   func() map[string][]*object.Service
	servicesByName func() map[string][]*object.Service // by external address
	endpoints      func() []*object.Endpoints
	endpointsByIP  func() map[string][]*object.Endpoints
	podsByIP       func() map[string][]*object.Pod
}

// objectOptions are the options of the plugin that say which objects it has.
type objectOptions struct {
	// labels selects Services, EndpointSlices and pods, namespaceLabels namespaces; nil selects all.
	labels, namespaceLabels labels.Selector
	noEndpoints, zonal      bool
	// pods tells that the plugin has pods: the option pods is verified.
	pods bool
}

// readOptions reads those of a directive that the plugin has accepted.
func readOptions(l *line) (objectOptions, error) {
	var o objectOptions
	for _, sub := range l.body {
		args := texts(sub.args())
		var err error
		switch sub.name() {
		case "labels":
			o.labels, err = labels.Parse(strings.Join(args, " "))
		case "namespace_labels":
			o.namespaceLabels, err = labels.Parse(strings.Join(args, " "))
		case "noendpoints":
			o.noEndpoints = true
		case "zonal":
			o.zonal = true
		case "pods":
			o.pods = slices.Equal(args, []string{"verified"})
		}
		if err != nil {
			return o, fmt.Errorf("reading %s: %w", sub.name(), err)
		}
	}
	return o, nil
}

func selects(s labels.Selector, o metav1.Object) bool {
	return s == nil || s.Matches(labels.Set(o.GetLabels()))
}

func newObjects(s *cluster.Snapshot, ix *cluster.Index, options objectOptions) *objects {
	o := &objects{snapshot: s, index: ix, options: options}
	o.services = sync.OnceValue(func() []*object.Service {
		var list []*object.Service
		for _, svc := range s.Services {
			list = append(list, o.service(svc)...)
		}
		return append(list, o.missingService(metav1.NamespaceDefault, "kubernetes")...)
	})
	o.servicesByIP = sync.OnceValue(func() map[string][]*object.Service {
		return tabulate(o.services(), func(svc *object.Service) []string { return svc.ClusterIPs })
	})
	o.servicesByName = sync.OnceValue(func() map[string][]*object.Service {
		return tabulate(o.services(), func(svc *object.Service) []string { return svc.ExternalIPs })
	})
	o.endpoints = sync.OnceValue(func() []*object.Endpoints {
		var list []*object.Endpoints
		for _, e := range s.EndpointSlices {
			list = append(list, o.slice(e)...)
		}
		return list
	})
	o.endpointsByIP = sync.OnceValue(func() map[string][]*object.Endpoints {
		return tabulate(o.endpoints(), func(e *object.Endpoints) []string { return e.IndexIP })
	})
	o.podsByIP = sync.OnceValue(func() map[string][]*object.Pod {
		var list []*object.Pod
		for _, p := range s.Pods {
			list = append(list, o.pod(p)...)
		}
		return tabulate(list, func(p *object.Pod) []string { return p.PodIPs })
	})
	return o
}

func tabulate[T any](list []T, keys func(T) []string) map[string][]T {
	table := make(map[string][]T, len(list))
	for _, t := range list {
		for _, k := range keys(t) {
			table[k] = append(table[k], t)
		}
	}
	return table
}

// convert gives a copy of an object to a function of the plugin, which takes it apart.
func convert[T any, P interface {
	*T
	metav1.Object
}, R metav1.Object](from P, to func(metav1.Object) (metav1.Object, error)) []R {
	dup := *from
	converted, err := to(P(&dup))
	if err != nil {
		return nil // the plugin leaves it out too
	}
	r, ok := converted.(R)
	if !ok {
		return nil
	}
	return []R{r}
}

// service converts a Service; none if the options leave it out. One without a cluster IP gets a placeholder, since it
// answers all the same.
func (o *objects) service(svc *corev1.Service) []*object.Service {
	if svc == nil || !selects(o.options.labels, svc) {
		return nil
	}
	dup := *svc
	if dup.Spec.Type != corev1.ServiceTypeExternalName && dup.Spec.ClusterIP == "" && len(dup.Spec.ClusterIPs) == 0 {
		for _, family := range dup.Spec.IPFamilies {
			ip := placeholder4
			if family == corev1.IPv6Protocol {
				ip = placeholder6
			}
			dup.Spec.ClusterIPs = append(dup.Spec.ClusterIPs, ip.String())
		}
		if len(dup.Spec.ClusterIPs) == 0 {
			dup.Spec.ClusterIPs = []string{placeholder4.String()}
		}
	}
	return convert[corev1.Service, *corev1.Service, *object.Service](&dup, object.ToService)
}

// missingService is default/kubernetes, which the API server keeps in every cluster, where only a selection of objects
// was read and does not have it.
func (o *objects) missingService(namespace, name string) []*object.Service {
	if namespace != metav1.NamespaceDefault || name != "kubernetes" || !o.snapshot.Partial || o.index.Service(namespace, name) != nil {
		return nil
	}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"},
	}}
	svc.Spec.Ports = []corev1.ServicePort{{Name: "https", Protocol: corev1.ProtocolTCP, Port: 443}}
	return o.service(svc)
}

func (o *objects) slice(e *discoveryv1.EndpointSlice) []*object.Endpoints {
	if o.options.noEndpoints || !selects(o.options.labels, e) {
		return nil
	}
	to := object.EndpointSliceToEndpoints
	if o.options.zonal {
		to = object.EndpointSliceToEndpointsWithZones
	}
	return convert[discoveryv1.EndpointSlice, *discoveryv1.EndpointSlice, *object.Endpoints](e, to)
}

// pod leaves out what the plugin asks the API server to leave out (podListFunc).
func (o *objects) pod(p *cluster.Pod) []*object.Pod {
	switch p.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown:
		return nil
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels}}
	if !o.options.pods || !selects(o.options.labels, pod) {
		return nil
	}
	for _, ip := range p.IPs {
		pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: ip})
	}
	return convert[corev1.Pod, *corev1.Pod, *object.Pod](pod, object.ToPod)
}

// cutKey undoes object.ServiceKey.
func cutKey(key string) (namespace, name string) {
	i := strings.LastIndexByte(key, '.')
	if i < 0 {
		return "", key
	}
	return key[i+1:], key[:i]
}

// ServiceList returns all Services.
func (o *objects) ServiceList() []*object.Service { return o.services() }

// EndpointsList returns all EndpointSlices.
func (o *objects) EndpointsList() []*object.Endpoints { return o.endpoints() }

// SvcIndex returns the Service of a key.
func (o *objects) SvcIndex(key string) []*object.Service {
	namespace, name := cutKey(key)
	return append(o.service(o.index.Service(namespace, name)), o.missingService(namespace, name)...)
}

// EpIndex returns the EndpointSlices of a Service.
func (o *objects) EpIndex(key string) []*object.Endpoints {
	namespace, name := cutKey(key)
	var list []*object.Endpoints
	for _, e := range o.index.EndpointSlices(namespace, name) {
		list = append(list, o.slice(e)...)
	}
	return list
}

// SvcIndexReverse returns the Services of a cluster IP.
func (o *objects) SvcIndexReverse(ip string) []*object.Service { return o.servicesByIP()[ip] }

// SvcExtIndexReverse returns the Services of an external address.
func (o *objects) SvcExtIndexReverse(ip string) []*object.Service { return o.servicesByName()[ip] }

// EpIndexReverse returns the EndpointSlices that hold an address.
func (o *objects) EpIndexReverse(ip string) []*object.Endpoints { return o.endpointsByIP()[ip] }

// PodIndex returns the pods of an address.
func (o *objects) PodIndex(ip string) []*object.Pod { return o.podsByIP()[ip] }

// ServiceImportList returns nothing: snapshots have no ServiceImports.
func (o *objects) ServiceImportList() []*object.ServiceImport { return nil }

// SvcImportIndex returns nothing.
func (o *objects) SvcImportIndex(string) []*object.ServiceImport { return nil }

// McEpIndex returns nothing.
func (o *objects) McEpIndex(string) []*object.MultiClusterEndpoints { return nil }

// GetNodeByName is not used by the plugin any more.
func (o *objects) GetNodeByName(context.Context, string) (*corev1.Node, error) {
	return nil, errors.New("snapshots are not asked for nodes")
}

// GetNamespaceByName returns a namespace, also one that was not read and is known from the objects in it.
func (o *objects) GetNamespaceByName(name string) (*object.Namespace, error) {
	if !o.index.HasNamespace(name) {
		return nil, errors.New("namespace not found")
	}
	n := o.index.Namespace(name)
	if n == nil {
		n = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	if !selects(o.options.namespaceLabels, n) {
		return nil, errors.New("namespace not found")
	}
	return &object.Namespace{Name: name}, nil
}

// Run does nothing.
func (o *objects) Run() {}

// HasSynced says that everything is there.
func (o *objects) HasSynced() bool { return true }

// Stop does nothing.
func (o *objects) Stop() error { return nil }

// Modified is the serial of zones, which is the time of the last change in a real cluster.
func (o *objects) Modified(kubernetes.ModifiedMode) int64 { return 1 }

// uncertain says why the snapshot cannot tell whether a name under zone exists; empty where it can.
func (o *objects) uncertain(name, zone string) string {
	for _, r := range []cluster.Resource{cluster.Namespaces, cluster.Services} {
		if why, absent := o.snapshot.Absent[r]; absent {
			return fmt.Sprintf("%s were not read: %s", r, why)
		}
	}
	m, ok := resolve.Shape(name, zone)
	if ok && m.Node == resolve.PodNode && o.options.pods && (!o.snapshot.Known(cluster.Pods) || o.snapshot.Partial) {
		return "not all pods are in the snapshot"
	}
	if !ok || m.Service == "" {
		return ""
	}
	svc := o.index.Service(m.Namespace, m.Service)
	if svc == nil || svc.Spec.ClusterIP != corev1.ClusterIPNone && m.Node != resolve.EndpointNode {
		return ""
	}
	if _, known := o.index.Endpoints(m.Namespace, m.Service); !known {
		return fmt.Sprintf("the EndpointSlices of Service %s/%s are not in the snapshot", m.Namespace, m.Service)
	}
	return ""
}
