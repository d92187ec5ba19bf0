package cluster

import (
	"cmp"
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
