package rehearse

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
)

// large is the world with 10,000 Services more, in 500 namespaces.
func large(b *testing.B) Config {
	b.Helper()
	s := world(kubeadm, "v1.15.0", nil)
	for n := range 500 {
		namespace := fmt.Sprintf("team-%d", n)
		s.Namespaces = append(s.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		for i := range 20 {
			svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("app-%d", i)}}
			svc.Spec.ClusterIP = fmt.Sprintf("10.%d.%d.%d", 96+n/256, n%256, i)
			svc.Spec.ClusterIPs = []string{svc.Spec.ClusterIP}
			s.Services = append(s.Services, svc)
		}
	}
	return Config{Corefile: corefileOf(b, s), Snapshot: s, Index: cluster.NewIndex(s), Upstream: address}
}

// BenchmarkStart starts and stops a judge over a large cluster.
func BenchmarkStart(b *testing.B) {
	config := large(b)
	for b.Loop() {
		j, err := Start(b.Context(), config)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := j.Ask(b.Context(), Question{Name: "app-1.team-3.svc.cluster.local"}); err != nil {
			b.Fatal(err)
		}
		if err := j.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAsk asks for a name inside and one outside of the cluster.
func BenchmarkAsk(b *testing.B) {
	for _, name := range []string{"app-1.team-3.svc.cluster.local", "www.example.org"} {
		b.Run(name, func(b *testing.B) {
			j := begin(b, large(b))
			for b.Loop() {
				if _, err := j.Ask(b.Context(), Question{Name: name}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
