package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

func workload(namespace string, spec corev1.PodSpec) *Workload {
	return &Workload{Object: finding.Object{Kind: "Deployment", Namespace: namespace, Name: "app"}, Spec: &spec}
}

func TestPodConfig(t *testing.T) {
	const searches = "shop.svc.cluster.local. svc.cluster.local. cluster.local."
	podText := &Text{Kind: TextPodResolvConf, Name: "resolv.conf", Data: "search a.svc.cluster.local svc.cluster.local cluster.local corp.test lan.test\nnameserver 10.96.0.99\noptions ndots:5\n"}
	nodeText := &Text{Kind: TextNodeResolvConf, Name: "node", Data: "search node.test\nnameserver 192.0.2.1\noptions rotate\n"}
	for _, tc := range []struct {
		name        string
		texts       []*Text
		spec        corev1.PodSpec
		nameservers string
		search      string
		ndots       int
		// unknown lists what is not known: search, nameservers, options.
		unknown string
		asks    bool
	}{
		{name: "nothing of the node", nameservers: "10.96.0.10 2001:db8::a", search: searches, ndots: 5, unknown: "search", asks: true},
		{name: "a pod's file", texts: []*Text{podText}, nameservers: "10.96.0.99", search: searches + " corp.test. lan.test.", ndots: 5, asks: true},
		{name: "a node's file", texts: []*Text{podText, nodeText}, nameservers: "10.96.0.99", search: searches + " node.test.", ndots: 5, asks: true},
		{
			name: "a file of a pod of another policy", texts: []*Text{{Kind: TextPodResolvConf, Name: "r", Data: "search corp.test\n"}},
			nameservers: "10.96.0.10 2001:db8::a", search: searches, ndots: 5, unknown: "search", asks: true,
		},
		{
			name: "host network", spec: corev1.PodSpec{HostNetwork: true, DNSPolicy: corev1.DNSClusterFirst},
			ndots: 1, unknown: "search nameservers options",
		},
		{
			name: "host network with a node's file", texts: []*Text{nodeText}, spec: corev1.PodSpec{HostNetwork: true},
			nameservers: "192.0.2.1", search: "node.test.", ndots: 1,
		},
		{
			name: "host network that asks the cluster", spec: corev1.PodSpec{HostNetwork: true, DNSPolicy: corev1.DNSClusterFirstWithHostNet},
			nameservers: "10.96.0.10 2001:db8::a", search: searches, ndots: 5, unknown: "search", asks: true,
		},
		{
			name: "Default, of whose node a pod shows the search list", texts: []*Text{podText}, spec: corev1.PodSpec{DNSPolicy: corev1.DNSDefault},
			search: "corp.test. lan.test.", ndots: 1, unknown: "nameservers options",
		},
		{
			name: "None with others", spec: corev1.PodSpec{DNSPolicy: corev1.DNSNone, DNSConfig: &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.9"}}},
			nameservers: "192.0.2.9", ndots: 1,
		},
		{
			name: "None with the cluster's",
			spec: corev1.PodSpec{DNSPolicy: corev1.DNSNone, DNSConfig: &corev1.PodDNSConfig{
				Nameservers: []string{"10.96.0.10"}, Searches: []string{"svc.cluster.local"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("3")}, {Name: "rotate"}},
			}},
			nameservers: "10.96.0.10", search: "svc.cluster.local.", ndots: 3, asks: true,
		},
		{
			name:        "ClusterFirst with more",
			spec:        corev1.PodSpec{DNSConfig: &corev1.PodDNSConfig{Searches: []string{"Own.Test"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}}}},
			nameservers: "10.96.0.10 2001:db8::a", search: searches + " own.test.", ndots: 2, unknown: "search", asks: true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := snapshot(t, strings.Replace(kubeadm, "&spec", "", 1))
			s.Texts = tc.texts
			cfg, asks := PodConfig(s, Derive(s), workload("shop", tc.spec))
			var unknown []string
			for _, u := range []struct {
				word string
				is   bool
			}{{"search", cfg.SearchUnknown}, {"nameservers", cfg.NameserversUnknown}, {"options", cfg.OptionsUnknown}} {
				if u.is {
					unknown = append(unknown, u.word)
				}
			}
			got := []any{strings.Join(cfg.Nameservers, " "), strings.Join(cfg.Search, " "), cfg.NDots, strings.Join(unknown, " "), asks}
			if diff := cmp.Diff([]any{tc.nameservers, tc.search, tc.ndots, tc.unknown, tc.asks}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPodConfigHosts(t *testing.T) {
	s := &Snapshot{}
	cfg, _ := PodConfig(s, Derive(s), workload("shop", corev1.PodSpec{HostAliases: []corev1.HostAlias{{IP: "192.0.2.1", Hostnames: []string{"a", "b"}}}}))
	if !slices.Equal(cfg.Hosts, []string{"a", "b"}) {
		t.Errorf("hosts %v", cfg.Hosts)
	}
	if _, asks := PodConfig(s, Derive(s), &Workload{}); !asks {
		t.Error("a workload without a specification does not ask the cluster's server")
	}
}

// With NodeLocal DNSCache pods keep the address of the Service where the cache binds it, and get the cache's own where
// it does not (kube-proxy in the mode IPVS).
func TestNameserversWithNodeLocal(t *testing.T) {
	for list, want := range map[string]string{
		"169.254.20.10,10.96.0.10": "10.96.0.10", "169.254.20.10": "169.254.20.10", "": "10.96.0.10", "x": "10.96.0.10",
	} {
		s := snapshot(t, strings.Replace(gke, "169.254.20.10,10.96.0.10", list, 1))
		if got := Derive(s).Nameservers; !slices.Equal(got, []string{want}) {
			t.Errorf("with %q pods ask %v, want %s", list, got, want)
		}
	}
}

// Another Service in front of the same pods is none that kubelets know.
func TestNameserversAreThoseOfTheClusterService(t *testing.T) {
	s := snapshot(t, strings.Replace(kubeadm, "&spec", "", 1), `
kind: Service
metadata: {name: dns-lan, namespace: kube-system}
spec: {type: LoadBalancer, selector: {k8s-app: kube-dns}, clusterIP: 10.96.0.77, ports: [{port: 53}]}
`)
	f := Derive(s)
	if !slices.Equal(f.Nameservers, []string{"10.96.0.10", "2001:db8::a"}) || !slices.Contains(f.DNS.Addresses, "10.96.0.77") {
		t.Errorf("nameservers %v, addresses %v", f.Nameservers, f.DNS.Addresses)
	}
	cfg, asks := PodConfig(s, f, workload("shop", corev1.PodSpec{DNSPolicy: corev1.DNSNone, DNSConfig: &corev1.PodDNSConfig{Nameservers: []string{"10.96.0.77"}}}))
	if !asks || len(cfg.Nameservers) != 1 {
		t.Error("a pod that asks the server at its other address does not count")
	}
}

func TestWorkloadsOrder(t *testing.T) {
	spec := &corev1.PodSpec{}
	pod := func(name string) *Pod {
		return &Pod{Namespace: "a", Name: name, Labels: map[string]string{"pod": name}, Spec: spec, Owner: finding.Object{Kind: "StatefulSet", Namespace: "a", Name: "db"}}
	}
	s := &Snapshot{Pods: []*Pod{pod("db-0"), pod("db-1"), pod("db-2")}}
	for seed := range uint64(6) {
		if w := shuffled(s, seed).Workloads(); len(w) != 1 || w[0].Labels["pod"] != "db-0" || w[0].Pods != 3 {
			t.Fatalf("workloads %+v", w)
		}
	}
}

var _ resolve.ClusterServer = (*Model)(nil)
