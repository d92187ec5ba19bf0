package cluster

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// sortWorkloads orders by object and then by specification, so that two templates of one Deployment in the middle of a
// rollout keep their places.
func sortWorkloads(ws []*Workload) {
	specs := map[*corev1.PodSpec]string{}
	text := func(s *corev1.PodSpec) string {
		t, ok := specs[s]
		if !ok {
			t = s.String()
			specs[s] = t
		}
		return t
	}
	slices.SortFunc(ws, func(a, b *Workload) int {
		if c := cmp.Or(
			cmp.Compare(a.Object.Namespace, b.Object.Namespace),
			cmp.Compare(a.Object.Kind, b.Object.Kind),
			cmp.Compare(a.Object.Name, b.Object.Name),
		); c != 0 || a.Spec == b.Spec {
			return c
		}
		return cmp.Compare(text(a.Spec), text(b.Spec))
	})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Known tells whether a resource was read: what is absent is not known, and neither is a kind of which a selection of
// objects holds none.
func (s *Snapshot) Known(r Resource) bool {
	if _, absent := s.Absent[r]; absent {
		return false
	}
	if !s.Partial {
		return true
	}
	switch r {
	case Namespaces:
		return len(s.Namespaces) > 0
	case Services:
		return len(s.Services) > 0
	case EndpointSlices:
		return len(s.EndpointSlices) > 0
	case Pods:
		return len(s.Pods)+len(s.Templates) > 0
	case ConfigMaps:
		return len(s.ConfigMaps) > 0
	case Nodes:
		return len(s.Nodes) > 0
	case ServiceEntries:
		return len(s.MeshHosts) > 0
	case Texts:
		return len(s.Texts) > 0
	}
	return false
}

func compareMeta(aNamespace, aName, bNamespace, bName string) int {
	return cmp.Or(cmp.Compare(aNamespace, bNamespace), cmp.Compare(aName, bName))
}

func compareServices(a, b *corev1.Service) int {
	return compareMeta(a.Namespace, a.Name, b.Namespace, b.Name)
}
