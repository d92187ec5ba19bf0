package load

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// ownerAnnotation keeps the resolved owner of a pod, as KIND/NAME, in snapshots that we write. It is believed in those
// only.
const ownerAnnotation = "dnsmesh.io/owner"

// builder is the one pipeline into a snapshot: objects are added as they were decoded, and reduced at once. Live, every
// list has a builder of its own, so that no two goroutines share one; merge joins them.
type builder struct {
	in *interner

	namespaces []*corev1.Namespace
	services   []*corev1.Service
	slices     []*discoveryv1.EndpointSlice
	endpoints  []*discoveryv1.EndpointSlice
	pods       []*cluster.Pod
	templates  []*cluster.Workload
	configMaps []*corev1.ConfigMap
	nodes      []*corev1.Node
	meshHosts  []string

	// jobs maps a Job, as namespace/name, to the CronJob that made it; "" for none.
	jobs map[string]string
	// ofJobs are the pods of Jobs whose CronJob is still to be found.
	ofJobs []*cluster.Pod
	// saved tells that the objects come from a snapshot of ours, whose owners are resolved.
	saved bool
}

func newBuilder() *builder {
	return &builder{in: newInterner(), jobs: map[string]string{}}
}

// mark is a state of a builder to which it can be set back.
type mark struct {
	namespaces, services, slices, pods, configMaps, nodes, meshHosts, ofJobs int
}

func (b *builder) mark() mark {
	return mark{
		len(b.namespaces), len(b.services), len(b.slices), len(b.pods), len(b.configMaps), len(b.nodes), len(b.meshHosts),
		len(b.ofJobs),
	}
}

// reset takes back what was added since m was taken. Jobs stay: adding one again changes nothing.
func (b *builder) reset(m mark) {
	b.namespaces = truncate(b.namespaces, m.namespaces)
	b.services = truncate(b.services, m.services)
	b.slices = truncate(b.slices, m.slices)
	b.pods = truncate(b.pods, m.pods)
	b.configMaps = truncate(b.configMaps, m.configMaps)
	b.nodes = truncate(b.nodes, m.nodes)
	b.meshHosts = truncate(b.meshHosts, m.meshHosts)
	b.ofJobs = truncate(b.ofJobs, m.ofJobs)
}

func truncate[T any](s []T, n int) []T {
	clear(s[n:])
	return s[:n]
}

// merge adds everything that o holds. o must not be used afterwards.
func (b *builder) merge(o *builder) {
	b.namespaces = append(b.namespaces, o.namespaces...)
	b.services = append(b.services, o.services...)
	b.slices = append(b.slices, o.slices...)
	b.endpoints = append(b.endpoints, o.endpoints...)
	b.pods = append(b.pods, o.pods...)
	b.templates = append(b.templates, o.templates...)
	b.configMaps = append(b.configMaps, o.configMaps...)
	b.nodes = append(b.nodes, o.nodes...)
	b.meshHosts = append(b.meshHosts, o.meshHosts...)
	b.ofJobs = append(b.ofJobs, o.ofJobs...)
	maps.Copy(b.jobs, o.jobs)
}

func (b *builder) addNamespace(n *corev1.Namespace) {
	ReduceNamespace(n)
	n.Labels = b.in.labels(n.Labels)
	b.namespaces = append(b.namespaces, n)
}

func (b *builder) addService(s *corev1.Service) {
	ReduceService(s)
	s.Namespace, s.Labels, s.Spec.Selector = b.in.string(s.Namespace), b.in.labels(s.Labels), b.in.labels(s.Spec.Selector)
	s.Annotations = b.in.labels(s.Annotations)
	s.Spec.Type = corev1.ServiceType(b.in.string(string(s.Spec.Type)))
	b.services = append(b.services, s)
}

func (b *builder) addEndpointSlice(s *discoveryv1.EndpointSlice) {
	ReduceEndpointSlice(s)
	b.shareSlice(s)
	b.slices = append(b.slices, s)
}

func (b *builder) shareSlice(s *discoveryv1.EndpointSlice) {
	s.Namespace = b.in.string(s.Namespace)
	// Decoding leaves room behind the last endpoint, a third of the whole on average.
	s.Endpoints = slices.Clip(slices.Clone(s.Endpoints))
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		e.NodeName = b.in.pointer(e.NodeName)
		c := &e.Conditions
		c.Ready, c.Serving, c.Terminating = b.in.bool(c.Ready), b.in.bool(c.Serving), b.in.bool(c.Terminating)
		e.Addresses, e.TargetRef = b.in.addresses(e.Addresses), b.in.target(e.TargetRef)
	}
}

// addEndpoints takes Endpoints of old clusters and manifests as slices, as the controller that mirrors them would.
// They count only where no EndpointSlice was read at all.
func (b *builder) addEndpoints(e *corev1.Endpoints) {
	for i, sub := range e.Subsets {
		s := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: e.Name, Namespace: e.Namespace, Labels: map[string]string{discoveryv1.LabelServiceName: e.Name},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
		}
		if i > 0 {
			s.Name = fmt.Sprintf("%s-%d", e.Name, i)
		}
		add := func(addresses []corev1.EndpointAddress, ready bool) {
			for _, a := range addresses {
				if strings.Contains(a.IP, ":") {
					s.AddressType = discoveryv1.AddressTypeIPv6
				}
				p := discoveryv1.Endpoint{
					Addresses: []string{a.IP}, NodeName: a.NodeName, TargetRef: a.TargetRef,
					Conditions: discoveryv1.EndpointConditions{Ready: &ready},
				}
				if a.Hostname != "" {
					p.Hostname = &a.Hostname
				}
				s.Endpoints = append(s.Endpoints, p)
			}
		}
		add(sub.Addresses, true)
		add(sub.NotReadyAddresses, false)
		for _, p := range sub.Ports {
			s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &p.Port, Protocol: &p.Protocol})
		}
		ReduceEndpointSlice(s)
		b.shareSlice(s)
		b.endpoints = append(b.endpoints, s)
	}
}

func (b *builder) addPod(p *corev1.Pod) {
	owner := podOwner(&p.ObjectMeta, p.Spec.NodeName)
	resolved := false
	if v, ok := p.Annotations[ownerAnnotation]; ok && b.saved {
		kind, name, _ := strings.Cut(v, "/")
		owner, resolved = finding.Object{Kind: kind, Namespace: p.Namespace, Name: name}, true
	}
	out := &cluster.Pod{
		Namespace: b.in.string(p.Namespace),
		Name:      p.Name,
		Labels:    b.in.labels(podLabels(p.Labels)),
		Owner:     b.object(owner),
		Ignore:    p.Annotations[IgnoreAnnotation],
		Node:      b.in.string(p.Spec.NodeName),
		Phase:     corev1.PodPhase(b.in.string(string(p.Status.Phase))),
	}
	for _, a := range p.Status.PodIPs {
		out.IPs = append(out.IPs, a.IP)
	}
	if len(out.IPs) == 0 && p.Status.PodIP != "" {
		out.IPs = []string{p.Status.PodIP}
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			out.Ready = c.Status == corev1.ConditionTrue
		}
	}
	for i := range p.Status.ContainerStatuses {
		out.Restarts += p.Status.ContainerStatuses[i].RestartCount
	}
	if impliesHostname(owner.Kind) {
		p.Spec.Hostname = ""
	}
	ReducePodSpec(&p.Spec, servesDNS(p.Labels, &p.Spec))
	out.Spec = b.in.spec(&p.Spec)
	b.pods = append(b.pods, out)
	if owner.Kind == kindJob && !resolved {
		b.ofJobs = append(b.ofJobs, out)
	}
}

// podLabels drops what a Job's controller puts on its pods to find them again; no Service selects by a unique
// identifier, and it would keep labels from being shared.
func podLabels(m map[string]string) map[string]string {
	delete(m, "controller-uid")
	delete(m, "batch.kubernetes.io/controller-uid")
	return m
}

func (b *builder) object(o finding.Object) finding.Object {
	return finding.Object{Kind: b.in.string(o.Kind), Namespace: b.in.string(o.Namespace), Name: b.in.string(o.Name)}
}

// addController takes the pod template of a controller. One that is itself the work of another controller is left out.
func (b *builder) addController(kind string, m *metav1.ObjectMeta, t *corev1.PodTemplateSpec) {
	owner := controller(m)
	if kind == kindJob {
		name := ""
		if owner != nil && owner.Kind == kindCronJob {
			name = owner.Name
		}
		b.addJob(m.Namespace, m.Name, name)
	}
	if owner != nil && (kind == kindJob || kind == "ReplicaSet" || kind == "ReplicationController") {
		return
	}
	if len(t.Spec.Containers) == 0 {
		return
	}
	ignore := t.Annotations[IgnoreAnnotation]
	if ignore == "" {
		ignore = m.Annotations[IgnoreAnnotation]
	}
	if impliesHostname(kind) {
		t.Spec.Hostname = ""
	}
	ReducePodSpec(&t.Spec, servesDNS(t.Labels, &t.Spec))
	b.templates = append(b.templates, &cluster.Workload{
		Object: b.object(finding.Object{Kind: kind, Namespace: m.Namespace, Name: m.Name}),
		Labels: b.in.labels(podLabels(t.Labels)),
		Ignore: ignore,
		Spec:   b.in.spec(&t.Spec),
	})
}

func (b *builder) addJob(namespace, name, cronJob string) {
	b.jobs[namespace+"/"+name] = cronJob
}

func (b *builder) addConfigMap(c *corev1.ConfigMap) {
	ReduceConfigMap(c)
	c.Namespace, c.Labels = b.in.string(c.Namespace), b.in.labels(c.Labels)
	b.configMaps = append(b.configMaps, c)
}

func (b *builder) addNode(n *corev1.Node) {
	ReduceNode(n)
	b.nodes = append(b.nodes, n)
}

// addMeshHosts takes the hosts of one ServiceEntry. A short name there means the namespace of the ServiceEntry in
// Istio's own registry and never a name that DNS is asked for, so it is kept as it stands.
func (b *builder) addMeshHosts(hosts []string) {
	for _, h := range hosts {
		if h = strings.TrimSuffix(strings.ToLower(h), "."); h != "" {
			b.meshHosts = append(b.meshHosts, h)
		}
	}
}

// resolveJobs replaces the Jobs that own pods by the CronJobs that made them.
func (b *builder) resolveJobs() {
	for _, p := range b.ofJobs {
		name, known := b.jobs[p.Namespace+"/"+p.Owner.Name]
		if !known {
			name = cronJobOfName(p.Owner.Name)
		}
		if name != "" {
			p.Owner.Kind, p.Owner.Name = kindCronJob, b.in.string(name)
		}
	}
	b.ofJobs = nil
}

// finish puts what was added into s, in a fixed order, and leaves out the ConfigMaps that nobody reads. It returns the
// objects that came more than once, of which the last one is taken.
func (b *builder) finish(s *cluster.Snapshot) (repeated []finding.Object) {
	b.resolveJobs()
	if len(b.slices) == 0 {
		b.slices = b.endpoints
	}
	note := func(kind string) func(namespace, name string) {
		return func(namespace, name string) {
			repeated = append(repeated, finding.Object{Kind: kind, Namespace: namespace, Name: name})
		}
	}
	s.Namespaces = ordered(b.namespaces, func(n *corev1.Namespace) (string, string) { return "", n.Name }, note("Namespace"))
	s.Services = ordered(b.services, func(v *corev1.Service) (string, string) { return v.Namespace, v.Name }, note("Service"))
	s.EndpointSlices = ordered(b.slices, func(v *discoveryv1.EndpointSlice) (string, string) { return v.Namespace, v.Name },
		note("EndpointSlice"))
	s.Pods = ordered(b.pods, func(p *cluster.Pod) (string, string) { return p.Namespace, p.Name }, note("Pod"))
	s.Templates = ordered(b.templates, func(w *cluster.Workload) (string, string) {
		return w.Object.Namespace, w.Object.Kind + " " + w.Object.Name
	}, func(namespace, name string) {
		kind, name, _ := strings.Cut(name, " ")
		note(kind)(namespace, name)
	})
	s.ConfigMaps = ordered(b.configMaps, func(c *corev1.ConfigMap) (string, string) { return c.Namespace, c.Name }, note("ConfigMap"))
	s.ConfigMaps = needsOf(s.Pods, s.Templates).filter(s.ConfigMaps)
	s.Nodes = ordered(b.nodes, func(n *corev1.Node) (string, string) { return "", n.Name }, note("Node"))
	slices.Sort(b.meshHosts)
	s.MeshHosts = slices.Clip(slices.Compact(b.meshHosts))
	return repeated
}

// ordered sorts by namespace and name, takes the last of several objects of one name, and calls again for each of them.
func ordered[T any](objects []T, name func(T) (namespace, name string), again func(namespace, name string)) []T {
	compare := func(a, b T) int {
		an, a1 := name(a)
		bn, b1 := name(b)
		return cmp.Or(cmp.Compare(an, bn), cmp.Compare(a1, b1))
	}
	slices.SortStableFunc(objects, compare)
	out := objects[:0]
	for i, o := range objects {
		if i+1 < len(objects) && compare(o, objects[i+1]) == 0 {
			if i == 0 || compare(objects[i-1], o) != 0 {
				again(name(o))
			}
			continue
		}
		out = append(out, o)
	}
	clear(objects[len(out):])
	if len(out) == 0 {
		return nil
	}
	return slices.Clip(out)
}
