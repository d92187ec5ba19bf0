package rehearse

import (
	"context"
	"testing"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSmoke(t *testing.T) {
	s := &cluster.Snapshot{Texts: []*cluster.Text{{Kind: cluster.TextCorefile, Name: "Corefile", Data: `.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
`}}}
	s.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	svc.Spec.ClusterIP = "10.96.0.7"
	svc.Spec.ClusterIPs = []string{"10.96.0.7"}
	svc.Spec.Ports = []corev1.ServicePort{{Port: 80, Protocol: "TCP", Name: "http"}}
	s.Services = []*corev1.Service{svc}
	f := cluster.Derive(s)
	j, err := Start(context.Background(), Config{Corefile: f.DNS.Corefile, Snapshot: s})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"web.default.svc.cluster.local", "default.svc.cluster.local", "nope.default.svc.cluster.local", "example.org", "10.0.96.10.in-addr.arpa"} {
		a, err := j.Ask(context.Background(), Question{Name: n})
		t.Logf("%s %+v %v", n, a, err)
	}
	if err := j.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
}
