// Package cluster holds what was read of one cluster, what could not be read and why, and the facts that follow from
// it: which server answers DNS, with which Corefile, for which cluster domain, on which distribution.
//
// A Snapshot is filled by package load, from a live cluster or from files, through one pipeline. It is read-only once
// it is filled, and no reader may depend on the order of its slices.
package cluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// Resource names one input of a snapshot, in the plural form of kubectl where it is a kind of object.
type Resource string

// The inputs that a snapshot may hold.
const (
	Namespaces     Resource = "namespaces"
	Services       Resource = "services"
	EndpointSlices Resource = "endpointslices"
	// Pods stands for pods and for the pod templates of controllers.
	Pods       Resource = "pods"
	ConfigMaps Resource = "configmaps"
	Nodes      Resource = "nodes"
	// ServiceEntries are Istio's; hosts that they define never reach the cluster's DNS server unchanged.
	ServiceEntries Resource = "serviceentries"
	// Texts stands for resolv.conf files and Corefiles that were given as files.
	Texts Resource = "texts"
)

// Resources lists every input.
func Resources() []Resource {
	return []Resource{Namespaces, Services, EndpointSlices, Pods, ConfigMaps, Nodes, ServiceEntries, Texts}
}

// Snapshot is what was read of one cluster. Objects hold only what checks read: see Reduce in package load.
type Snapshot struct {
	// Name is the kubeconfig context, or the path of the files.
	Name string
	// ServerVersion is the gitVersion of the API server, such as "v1.36.3+k3s1"; empty when unknown.
	ServerVersion string
	// APIGroups are the API groups that the server offers, sorted; nil when unknown.
	APIGroups []string
	// Partial tells that the input is a selection of objects, such as a folder of manifests, and not a whole cluster:
	// a kind of which it holds no object at all is then absent.
	Partial bool
	// Override is what the user said about the DNS server, above what the objects show.
	Override Override

	Namespaces     []*corev1.Namespace
	Services       []*corev1.Service
	EndpointSlices []*discoveryv1.EndpointSlice
	Pods           []*Pod
	// Templates are workloads read from controllers rather than from pods: what files give.
	Templates  []*Workload
	ConfigMaps []*corev1.ConfigMap
	Nodes      []*corev1.Node
	// MeshHosts are the hosts of ServiceEntries, lower case without final dot; a leading "*." stands for every subdomain.
	MeshHosts []string
	Texts     []*Text

	// Absent tells why an input could not be read. What is absent is not empty: a check that needs it is skipped.
	Absent map[Resource]string
}

// Override is what a user states about the DNS server of a cluster when the objects do not show it.
type Override struct {
	// Implementation is "coredns" or "kube-dns", or empty.
	Implementation Implementation
	// Version is the version that Implementation runs, such as "1.11.3", or empty.
	Version string
	// Domain is the cluster domain, or empty.
	Domain string
}

// Pod is one pod, with the part of its specification that checks read.
type Pod struct {
	Namespace, Name string
	Labels          map[string]string
	// Owner is the workload that a user knows: the Deployment rather than its ReplicaSet, the CronJob rather than its
	// Job; the pod itself when nothing owns it.
	Owner finding.Object
	// Ignore is the value of the annotation dnsmesh.io/ignore.
	Ignore   string
	Node     string
	IPs      []string
	Phase    corev1.PodPhase
	Ready    bool
	Restarts int32
	// Spec is shared between pods whose reduced specifications are equal.
	Spec *corev1.PodSpec
}

// Workload is a set of pods that one controller made from one template.
type Workload struct {
	Object finding.Object
	Labels map[string]string
	Ignore string
	// Pods is how many pods of the template were seen; 0 where only the controller was read.
	Pods int
	// Ready is how many of them are ready.
	Ready int
	Spec  *corev1.PodSpec
}

// TextKind tells what a Text is.
type TextKind string

// The kinds of texts that a snapshot may hold besides objects.
const (
	// TextCorefile is the Corefile of the cluster's DNS server.
	TextCorefile TextKind = "Corefile"
	// TextUpstreamCorefile is the Corefile of the server to which the cluster's DNS server forwards.
	TextUpstreamCorefile TextKind = "UpstreamCorefile"
	// TextPodResolvConf is resolv.conf as a pod has it.
	TextPodResolvConf TextKind = "PodResolvConf"
	// TextNodeResolvConf is resolv.conf as a node has it.
	TextNodeResolvConf TextKind = "NodeResolvConf"
)

// Text is a file that is not a Kubernetes object.
type Text struct {
	Kind TextKind `json:"kind"`
	// Name is the path as the user gave it.
	Name string `json:"name"`
	Data string `json:"data"`
}

// Only returns a snapshot that holds the named inputs and nothing else, so that a check that reads what it did not ask
// for finds it empty. Objects are shared with s.
func (s *Snapshot) Only(inputs ...Resource) *Snapshot {
	out := &Snapshot{
		Name: s.Name, ServerVersion: s.ServerVersion, APIGroups: s.APIGroups, Partial: s.Partial, Override: s.Override,
		Absent: map[Resource]string{},
	}
	for _, r := range inputs {
		if why, ok := s.Absent[r]; ok {
			out.Absent[r] = why
		}
		switch r {
		case Namespaces:
			out.Namespaces = s.Namespaces
		case Services:
			out.Services = s.Services
		case EndpointSlices:
			out.EndpointSlices = s.EndpointSlices
		case Pods:
			out.Pods, out.Templates = s.Pods, s.Templates
		case ConfigMaps:
			out.ConfigMaps = s.ConfigMaps
		case Nodes:
			out.Nodes = s.Nodes
		case ServiceEntries:
			out.MeshHosts = s.MeshHosts
		case Texts:
			out.Texts = s.Texts
		}
	}
	return out
}

// Workloads groups the pods by owner and specification, adds the templates of controllers that have no pod here, and
// returns them in a stable order.
func (s *Snapshot) Workloads() []*Workload {
	type key struct {
		owner finding.Object
		spec  *corev1.PodSpec
	}
	byKey := map[key]*Workload{}
	// Labels and annotations are those of the pod with the least name, so that the order of pods does not matter.
	least := map[*Workload]string{}
	owners := map[finding.Object]bool{}
	for _, p := range s.Pods {
		if p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed {
			continue
		}
		k := key{p.Owner, p.Spec}
		w := byKey[k]
		if w == nil {
			w = &Workload{Object: p.Owner, Labels: p.Labels, Ignore: p.Ignore, Spec: p.Spec}
			byKey[k] = w
			owners[p.Owner] = true
			least[w] = p.Name
		} else if p.Name < least[w] {
			w.Labels, w.Ignore, least[w] = p.Labels, p.Ignore, p.Name
		}
		w.Pods++
		if p.Ready {
			w.Ready++
		}
	}
	all := slices.Collect(maps.Values(byKey))
	for _, w := range s.Templates {
		if !owners[w.Object] {
			all = append(all, w)
		}
	}
	sortWorkloads(all)
	return all
}
