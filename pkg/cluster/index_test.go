package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

const objects = `
kind: Namespace
metadata: {name: shop, labels: {team: a}}
---
kind: Namespace
metadata: {name: empty}
---
kind: Service
metadata: {name: web, namespace: shop, labels: {exposed: "yes"}}
spec: {clusterIP: 10.96.1.1, clusterIPs: [10.96.1.1, "2001:db8::1"], ports: [{name: http, port: 80}, {name: u, port: 81, protocol: UDP}]}
---
kind: Service
metadata: {name: db, namespace: shop}
spec: {clusterIP: None, ports: [{name: sql, port: 5432}]}
---
kind: Service
metadata: {name: alias, namespace: shop}
spec: {type: ExternalName, externalName: www.example.test}
---
kind: Service
metadata: {name: alias, namespace: legacy}
spec: {type: ExternalName, externalName: web.shop.svc.cluster.local}
---
kind: Service
metadata: {name: web, namespace: legacy}
spec: {ports: [{port: 80}]}
---
kind: EndpointSlice
metadata: {name: db-4, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{name: sql, port: 5432, protocol: TCP}]
endpoints:
- {addresses: [10.244.0.1], hostname: db-0, targetRef: {kind: Pod, name: db-0}}
- {addresses: [10.244.0.2], hostname: db-1, conditions: {ready: false}}
---
kind: EndpointSlice
metadata: {name: db-4b, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{name: metrics, port: 9187}]
endpoints:
- {addresses: [10.244.0.1], hostname: db-0, conditions: {ready: false}}
- {addresses: [10.244.0.2], hostname: db-1, conditions: {ready: true}}
---
kind: EndpointSlice
metadata: {name: db-6, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv6
endpoints: [{addresses: ["2001:db8::2"], hostname: db-0}]
---
kind: EndpointSlice
metadata: {name: fqdn, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: FQDN
endpoints: [{addresses: [a.example.test]}]
---
kind: Pod
metadata: {name: p, namespace: shop}
spec: {containers: [{name: c, image: a}]}
status: {podIPs: [{ip: 10.244.0.9}, {ip: "2001:db8::9"}]}
---
kind: Pod
metadata: {name: done, namespace: jobs}
spec: {containers: [{name: c, image: a}]}
status: {podIPs: [{ip: 10.244.0.8}]}
`

func objectNames(list []*corev1.Service) []string {
	var out []string
	for _, s := range list {
		out = append(out, s.Namespace+"/"+s.Name)
	}
	return out
}

func TestIndex(t *testing.T) {
	s := snapshot(t, objects)
	s.Pods[1].Phase = corev1.PodSucceeded
	for seed := range uint64(4) {
		ix := NewIndex(shuffled(s, seed))
		for _, tc := range []struct {
			what      string
			got, want any
		}{
			{"namespaces", ix.NamespaceNames(), []string{"empty", "shop"}},
			{"has shop", ix.HasNamespace("shop"), true},
			{"has legacy", ix.HasNamespace("legacy"), false},
			{"complete", ix.NamespacesComplete(), true},
			{"labels", ix.Namespace("shop").Labels["team"], "a"},
			{"in shop", objectNames(ix.ServicesIn("shop")), []string{"shop/alias", "shop/db", "shop/web"}},
			{"in none", objectNames(ix.ServicesIn("none")), []string(nil)},
			{"named web", objectNames(ix.ServicesNamed("web")), []string{"legacy/web", "shop/web"}},
			{"named none", objectNames(ix.ServicesNamed("zzz")), []string(nil)},
			{"aliases in shop", objectNames(ix.ExternalNames("shop")), []string{"shop/alias"}},
			{"aliases", objectNames(ix.Aliases()), []string{"legacy/alias", "shop/alias"}},
			{"a service", ix.Service("shop", "web").Spec.ClusterIP, "10.96.1.1"},
			{"no service", ix.Service("shop", "nope") == nil, true},
		} {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("%s: %s", tc.what, diff)
			}
		}
		sql, metrics := resolve.Port{Name: "sql", Protocol: "TCP"}, resolve.Port{Name: "metrics", Protocol: "TCP"}
		list, known := ix.Endpoints("shop", "db")
		addr := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
		if diff := cmp.Diff([]resolve.Endpoint{
			{Address: netip.MustParseAddr("10.244.0.1"), Hostname: "db-0", Pod: "db-0", Ready: true, Ports: []resolve.Port{sql, metrics}},
			{Address: netip.MustParseAddr("10.244.0.2"), Hostname: "db-1", Ready: true, Ports: []resolve.Port{sql, metrics}},
			{Address: netip.MustParseAddr("2001:db8::2"), Hostname: "db-0", Ready: true},
		}, list, addr); diff != "" || !known {
			t.Errorf("endpoints, known %t: %s", known, diff)
		}
		if list, known := ix.Endpoints("shop", "web"); len(list) > 0 || !known {
			t.Errorf("endpoints of names: %v, known %t", list, known)
		}
		for ip, want := range map[string]bool{"10.244.0.9": true, "2001:db8::9": true, "10.244.0.8": false} {
			for ns, in := range map[string]bool{"shop": true, "jobs": false} {
				if has, known := ix.HasPod(ns, netip.MustParseAddr(ip)); has != (want && in) || !known {
					t.Errorf("HasPod(%s, %s) is %t, known %t", ns, ip, has, known)
				}
			}
		}
	}
}

func TestIndexOfASelection(t *testing.T) {
	s := snapshot(t, objects)
	s.Partial, s.Namespaces = true, nil
	s.Templates = []*Workload{{Object: finding.Object{Kind: "Deployment", Namespace: "apps", Name: "a"}}}
	ix := NewIndex(s)
	want := []string{"apps", "default", "jobs", "kube-node-lease", "kube-public", "kube-system", "legacy", "shop"}
	if diff := cmp.Diff(want, ix.NamespaceNames()); diff != "" || ix.NamespacesComplete() {
		t.Errorf("namespaces, complete %t: %s", ix.NamespacesComplete(), diff)
	}
	if ix.Namespace("legacy") != nil {
		t.Error("a namespace that was not read has an object")
	}
	if _, known := ix.Endpoints("legacy", "web"); known {
		t.Error("a selection without a slice of a Service knows its endpoints")
	}
	if _, known := ix.Endpoints("shop", "db"); !known {
		t.Error("a selection with slices of a Service does not know its endpoints")
	}
	if _, known := ix.HasPod("shop", netip.MustParseAddr("192.0.2.1")); known {
		t.Error("a selection knows that a pod does not exist")
	}
	if _, ok := ix.Names().Service("default", "kubernetes"); !ok {
		t.Error("the API server's own Service is missing")
	}
	s.Partial, s.Absent = false, map[Resource]string{Namespaces: "forbidden"}
	if ix := NewIndex(s); ix.NamespacesComplete() || !ix.HasNamespace("legacy") {
		t.Error("forbidden namespaces are not inferred")
	}
	if _, ok := NewIndex(s).Names().Service("default", "kubernetes"); ok {
		t.Error("a Service of a whole cluster is made up")
	}
}

func TestNames(t *testing.T) {
	n := NewIndex(snapshot(t, objects)).Names()
	addr := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	got := slices.Collect(n.Services("shop"))
	want := []resolve.Service{
		{Namespace: "shop", Name: "alias", Kind: resolve.ExternalName, Target: "www.example.test"},
		{Namespace: "shop", Name: "db", Kind: resolve.Headless, Ports: []resolve.Port{{Name: "sql", Protocol: "TCP"}}},
		{
			Namespace: "shop", Name: "web", Addresses: []netip.Addr{netip.MustParseAddr("10.96.1.1"), netip.MustParseAddr("2001:db8::1")},
			Ports: []resolve.Port{{Name: "http", Protocol: "TCP"}, {Name: "u", Protocol: "UDP"}},
		},
	}
	if diff := cmp.Diff(want, got, addr, cmpopts.IgnoreFields(resolve.Service{}, "Endpoints")); diff != "" {
		t.Error(diff)
	}
	if len(got[1].Endpoints) != 3 {
		t.Errorf("the headless Service has %d endpoints", len(got[1].Endpoints))
	}
	if svc, ok := n.Service("legacy", "web"); !ok || svc.Kind != resolve.ClusterIP || len(svc.Addresses) != 0 {
		t.Errorf("a Service without address: %+v", svc)
	}
	for range n.Services("shop") {
		break // an early end is no fault
	}
	if got := slices.Collect(n.Namespaces()); !slices.Equal(got, []string{"empty", "shop"}) {
		t.Errorf("namespaces %v", got)
	}
	if got := slices.Collect(n.ExternalNames("legacy")); len(got) != 1 || got[0].Target != "web.shop.svc.cluster.local" {
		t.Errorf("aliases %v", got)
	}
}

// large makes a cluster of n Services in n/20 namespaces, a tenth of them aliases.
func large(n int) *Snapshot {
	s := &Snapshot{}
	for i := range n {
		svc := &corev1.Service{}
		svc.Namespace, svc.Name = fmt.Sprintf("ns-%d", i%(n/20)), fmt.Sprintf("svc-%d", i)
		svc.Spec.ClusterIP = "10.96.0.1"
		if i%10 == 0 {
			svc.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "www.example.test"}
		}
		s.Services = append(s.Services, svc)
	}
	for i := range n / 20 {
		ns := &corev1.Namespace{}
		ns.Name = fmt.Sprintf("ns-%d", i)
		s.Namespaces = append(s.Namespaces, ns)
	}
	return s
}

func BenchmarkIndex(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		s := large(n)
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ix := NewIndex(s)
				names := ix.Names()
				for i := range n {
					if _, ok := names.Service(fmt.Sprintf("ns-%d", i%(n/20)), fmt.Sprintf("svc-%d", i)); !ok {
						b.Fatal("a Service is not found")
					}
				}
			}
		})
	}
}

func BenchmarkDerive(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		s := large(n)
		dns := snapshot(b, k3s)
		s.Services, s.Templates, s.ConfigMaps = append(s.Services, dns.Services...), dns.Templates, dns.ConfigMaps
		for i := range 2 * n {
			owner := finding.Object{Kind: "Deployment", Namespace: fmt.Sprintf("ns-%d", i%(n/20)), Name: fmt.Sprintf("app-%d", i%(n/5))}
			s.Pods = append(s.Pods, &Pod{Namespace: owner.Namespace, Name: fmt.Sprintf("pod-%d", i), Owner: owner, Spec: &corev1.PodSpec{
				Containers: []corev1.Container{{Image: "registry.example.test/team/app:1.2.3", Args: []string{"--config=/etc/app/config.yaml"}}},
			}})
			if i >= n/5 {
				s.Pods[i].Spec = s.Pods[i-n/5].Spec
			}
		}
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if f := Derive(s); f.DNS == nil || f.DNS.Workload == nil {
					b.Fatal("the DNS server is not found")
				}
			}
		})
	}
}
