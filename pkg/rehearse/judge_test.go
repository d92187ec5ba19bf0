package rehearse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// kubeadm is the Corefile of kubeadm (cmd/kubeadm/app/phases/addons/dns/manifests.go).
const kubeadm = `.:53 {
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
`

// world returns a snapshot with a few Services, and with the DNS server that has the Corefile, in a Deployment of the
// image tag, and files beside it in ConfigMap kube-system/extra, mounted at /etc/extra.
func world(corefile, tag string, files map[string]string) *cluster.Snapshot {
	s := &cluster.Snapshot{Name: "test", Absent: map[cluster.Resource]string{}}
	for _, name := range []string{"default", "kube-system", "prod", "com"} {
		s.Namespaces = append(s.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}})
	}
	service := func(namespace, name, ip string) *corev1.Service {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}}}
		svc.Spec.Type, svc.Spec.ClusterIP = corev1.ServiceTypeClusterIP, ip
		if ip != "" {
			svc.Spec.ClusterIPs = []string{ip}
		}
		svc.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}}
		s.Services = append(s.Services, svc)
		return svc
	}
	service("default", "web", "10.96.0.7")
	service("prod", "db", corev1.ClusterIPNone)
	service("prod", "planned", "")
	outside := service("default", "outside", "")
	outside.Spec.Type, outside.Spec.ExternalName = corev1.ServiceTypeExternalName, "www.example.org"
	for i, target := range []string{"two", "one"} {
		alias := service("default", []string{"one", "two"}[i], "")
		alias.Spec.Type, alias.Spec.ExternalName = corev1.ServiceTypeExternalName, target+".default.svc.cluster.local"
	}
	hostname, ready := "db-0", true
	s.EndpointSlices = append(s.EndpointSlices, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "prod", Name: "db-x", Labels: map[string]string{discoveryv1.LabelServiceName: "db"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"10.244.1.5"}, Hostname: &hostname, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		}},
	})
	s.Pods = append(s.Pods, &cluster.Pod{
		Namespace: "prod", Name: "app", IPs: []string{"10.244.2.9"}, Phase: corev1.PodRunning, Spec: &corev1.PodSpec{},
		Owner: finding.Object{Kind: "Pod", Namespace: "prod", Name: "app"},
	})

	s.ConfigMaps = append(s.ConfigMaps,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}, Data: map[string]string{"Corefile": corefile}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extra"}, Data: files},
	)
	spec := &corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "coredns", Image: "registry.k8s.io/coredns/coredns:" + tag, Args: []string{"-conf", "/etc/coredns/Corefile"},
			Env:          []corev1.EnvVar{{Name: "ZONE", Value: "from-the-deployment.test"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/coredns"}, {Name: "extra", MountPath: "/etc/extra"}, {Name: "secret", MountPath: "/etc/secret"}},
		}},
	}
	for _, name := range []string{"config", "extra"} {
		v := corev1.Volume{Name: name}
		v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: map[string]string{"config": "coredns", "extra": "extra"}[name]}}
		spec.Volumes = append(spec.Volumes, v)
	}
	secret := corev1.Volume{Name: "secret"}
	secret.Secret = &corev1.SecretVolumeSource{SecretName: "keys"}
	spec.Volumes = append(spec.Volumes, secret)
	s.Templates = append(s.Templates, &cluster.Workload{
		Object: finding.Object{Kind: "Deployment", Namespace: "kube-system", Name: "coredns"},
		Labels: map[string]string{"k8s-app": "kube-dns"}, Spec: spec,
	})
	return s
}

// corefileOf returns the Corefile of the DNS server of a snapshot.
func corefileOf(t testing.TB, s *cluster.Snapshot) *cluster.Corefile {
	t.Helper()
	for _, server := range cluster.Derive(s).Servers {
		if server.Corefile != nil {
			return server.Corefile
		}
	}
	t.Fatal("the snapshot has no Corefile")
	return nil
}

// configOf is the configuration for a Corefile in the world of these tests.
func configOf(t testing.TB, corefile, version string, files map[string]string) Config {
	t.Helper()
	s := world(corefile, "v"+version, files)
	v, _ := resolve.ParseVersion(version)
	return Config{Corefile: corefileOf(t, s), Snapshot: s, Version: v}
}

// begin starts a judge that ends with the test.
func begin(t testing.TB, config Config) *Judge {
	t.Helper()
	j, err := Start(t.Context(), config)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := j.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return j
}

// known is an upstream of which everything is known: it has one address for every name.
func known(Exchange) Reply { return Reply{} }

func address(e Exchange) Reply {
	if e.Type != dns.TypeA {
		return Reply{}
	}
	rr, err := dns.NewRR(e.Name + " 60 IN A 198.51.100.1")
	if err != nil {
		return Reply{Rcode: dns.RcodeServerFailure}
	}
	return Reply{Records: []dns.RR{rr}}
}

// show prints an answer in one line: rcode, records, block, plugin, and who was asked.
func show(a Answer) string {
	words := []string{dns.RcodeToString[a.Rcode]}
	for _, rr := range a.Answer {
		h := rr.Header()
		words = append(words, fmt.Sprintf("%s %s %s", h.Name, dns.TypeToString[h.Rrtype], strings.TrimPrefix(rr.String(), h.String())))
	}
	by := a.Plugin
	if a.Block == nil {
		by = "no block"
	} else if a.Block.Index > 0 {
		by = fmt.Sprintf("block %d %s", a.Block.Index, by)
	}
	words = append(words, "by "+by)
	for _, e := range a.Upstream {
		to := "asked " + e.To
		if e.Via != "" {
			to += " of " + e.Via
		}
		words = append(words, to+" for "+e.Name)
	}
	if a.Unknown != "" {
		words = append(words, "unknown: "+a.Unknown)
	}
	return strings.Join(words, "; ")
}

func TestAsk(t *testing.T) {
	const zone = "example.test. 60 IN SOA ns.example.test. admin.example.test. 1 7200 3600 1209600 60\n" +
		"example.test. 60 IN NS ns.example.test.\nwww.example.test. 60 IN A 192.0.2.80\n"
	files := map[string]string{
		"example.test.db": zone, "hosts": "192.0.2.81 printer.example.test\n", "resolv.conf": "nameserver 203.0.113.1\nnameserver 203.0.113.2\n",
		"include.db": zone + "$INCLUDE /etc/passwd\n", "generate.db": zone + "$generate 1-65535 h$ A 192.0.2.1\n",
		"extra.override": "template ANY ANY imported.test {\n  rcode NXDOMAIN\n}\n",
	}
	tests := []struct {
		name, corefile, version string
		upstream                func(Exchange) Reply
		question                Question
		want                    string
	}{
		{"service", kubeadm, "1.15.0", nil, Question{Name: "web.default.svc.cluster.local"}, "NOERROR; web.default.svc.cluster.local. A 10.96.0.7; by kubernetes"},
		{"upper case", kubeadm, "1.15.0", nil, Question{Name: "WEB.default.SVC.cluster.local."}, "NOERROR; WEB.default.SVC.cluster.local. A 10.96.0.7; by kubernetes"},
		{"service without IPv6", kubeadm, "1.15.0", nil, Question{Name: "web.default.svc.cluster.local", Type: dns.TypeAAAA}, "NOERROR; by kubernetes"},
		{"namespace", kubeadm, "1.15.0", nil, Question{Name: "com.svc.cluster.local"}, "NOERROR; by kubernetes"},
		{"namespace under svc", kubeadm, "1.15.0", nil, Question{Name: "example.com.svc.cluster.local"}, "NXDOMAIN; by kubernetes"},
		{"no such namespace", kubeadm, "1.15.0", nil, Question{Name: "web.nowhere.svc.cluster.local"}, "NXDOMAIN; by kubernetes"},
		{"headless", kubeadm, "1.15.0", nil, Question{Name: "db.prod.svc.cluster.local"}, "NOERROR; db.prod.svc.cluster.local. A 10.244.1.5; by kubernetes"},
		{"member", kubeadm, "1.15.0", nil, Question{Name: "db-0.db.prod.svc.cluster.local"}, "NOERROR; db-0.db.prod.svc.cluster.local. A 10.244.1.5; by kubernetes"},
		{"port", kubeadm, "1.15.0", nil, Question{Name: "_http._tcp.web.default.svc.cluster.local", Type: dns.TypeSRV}, "NOERROR; _http._tcp.web.default.svc.cluster.local. SRV 0 100 80 web.default.svc.cluster.local.; by kubernetes"},
		{"reverse", kubeadm, "1.15.0", nil, Question{Name: "7.0.96.10.in-addr.arpa", Type: dns.TypePTR}, "NOERROR; 7.0.96.10.in-addr.arpa. PTR web.default.svc.cluster.local.; by kubernetes"},
		{"server itself", kubeadm, "1.15.0", nil, Question{Name: "ns.dns.cluster.local"}, "NOERROR; by kubernetes; unknown: the address of the server itself is not known"},
		{"planned service", kubeadm, "1.15.0", nil, Question{Name: "planned.prod.svc.cluster.local"}, "NOERROR; planned.prod.svc.cluster.local. A 192.0.2.255; by kubernetes"},
		{
			"external name", kubeadm, "1.15.0", address,
			Question{Name: "outside.default.svc.cluster.local"},
			"NOERROR; outside.default.svc.cluster.local. CNAME www.example.org.; www.example.org. A 198.51.100.1; by kubernetes; asked /etc/resolv.conf for www.example.org.",
		},
		{"outside", kubeadm, "1.15.0", known, Question{Name: "www.example.org"}, "NOERROR; by forward; asked /etc/resolv.conf for www.example.org."},
		{
			"outside, unknown", kubeadm, "1.15.0", nil,
			Question{Name: "www.example.org"},
			"NXDOMAIN; by forward; asked /etc/resolv.conf for www.example.org.; unknown: what the upstream /etc/resolv.conf answers is not known",
		},
		{
			"upstreams by file", ".:53 {\n forward . /etc/extra/resolv.conf {\n  policy sequential\n }\n}\n", "1.15.0", known,
			Question{Name: "a.test"},
			"NOERROR; by forward; asked 203.0.113.1 of /etc/extra/resolv.conf for a.test.",
		},
		{"upstream as host name", ".:53 {\n forward . dns.example.org:5353\n}\n", "1.14.4", known, Question{Name: "a.test"}, "NOERROR; by forward; asked dns.example.org:5353 for a.test."},
		{
			"upstream over TLS", ".:53 {\n forward . tls://203.0.113.9%ens3 {\n  tls /etc/cert /etc/key\n  tls_servername dns.example.org\n }\n}\n", "1.15.0", known,
			Question{Name: "a.test"},
			"NOERROR; by forward; asked tls://203.0.113.9%ens3 for a.test.",
		},
		{
			"failover", ".:53 {\n forward . 203.0.113.1 203.0.113.2 {\n  policy sequential\n  failover REFUSED\n }\n}\n", "1.15.0",
			func(e Exchange) Reply {
				if e.To == "203.0.113.1" {
					return Reply{Rcode: dns.RcodeRefused}
				}
				return address(e)
			},
			Question{Name: "a.test"},
			"NOERROR; a.test. A 198.51.100.1; by forward; asked 203.0.113.1 for a.test.; asked 203.0.113.2 for a.test.",
		},
		{
			"rewrite leaves the owner", ".:53 {\n rewrite name suffix .shop.test .default.svc.cluster.local\n kubernetes cluster.local\n}\n", "1.15.0", nil,
			Question{Name: "web.shop.test"},
			"NOERROR; web.default.svc.cluster.local. A 10.96.0.7; by kubernetes",
		},
		{
			"rewrite with answer auto", ".:53 {\n rewrite name suffix .shop.test .default.svc.cluster.local answer auto\n kubernetes cluster.local\n}\n", "1.15.0", nil,
			Question{Name: "web.shop.test"},
			"NOERROR; web.shop.test. A 10.96.0.7; by kubernetes",
		},
		{
			"template hides kubernetes", ".:53 {\n kubernetes cluster.local\n template ANY ANY . {\n  rcode NXDOMAIN\n }\n}\n", "1.15.0", nil,
			Question{Name: "web.default.svc.cluster.local"},
			"NXDOMAIN; by template",
		},
		{"hosts without fallthrough", ".:53 {\n hosts {\n  192.0.2.5 a.test\n }\n forward . 203.0.113.1\n}\n", "1.15.0", nil, Question{Name: "b.test"}, "SERVFAIL; by hosts"},
		{"hosts", ".:53 {\n hosts {\n  192.0.2.5 a.test\n }\n}\n", "1.15.0", nil, Question{Name: "a.test"}, "NOERROR; a.test. A 192.0.2.5; by hosts"},
		{"hosts of the pod", ".:53 {\n hosts\n}\n", "1.15.0", nil, Question{Name: "localhost"}, "NOERROR; localhost. A 127.0.0.1; by hosts"},
		{"hosts of a file", ".:53 {\n hosts /etc/extra/hosts\n}\n", "1.15.0", nil, Question{Name: "printer.example.test"}, "NOERROR; printer.example.test. A 192.0.2.81; by hosts"},
		{"file", "example.test:53 {\n root /etc\n file extra/example.test.db\n}\n", "1.15.0", nil, Question{Name: "www.example.test"}, "NOERROR; www.example.test. A 192.0.2.80; by file"},
		{"auto", "example.test:53 {\n auto {\n  directory /etc/extra (.*)\\.db {1}\n }\n}\n", "1.15.0", nil, Question{Name: "www.example.test"}, "NXDOMAIN; by auto; unknown: it uses $GENERATE, which the judge does not follow"},
		{"file that includes", "example.test:53 {\n file /etc/extra/include.db\n}\n", "1.15.0", nil, Question{Name: "www.example.test"}, "NXDOMAIN; by file; unknown: it uses $INCLUDE, which the judge does not follow"},
		{"file that generates", "example.test:53 {\n file /etc/extra/generate.db\n}\n", "1.15.0", nil, Question{Name: "h1.example.test"}, "NXDOMAIN; by file; unknown: it uses $GENERATE, which the judge does not follow"},
		{"file of a Secret", "example.test:53 {\n file /etc/secret/zone.db\n}\n", "1.15.0", nil, Question{Name: "www.example.test"}, "NXDOMAIN; by file; unknown: the content of /etc/secret/zone.db is not known"},
		{"import", ".:53 {\n import /etc/extra/*.override\n}\n", "1.15.0", nil, Question{Name: "a.imported.test"}, "NXDOMAIN; by template"},
		{"environment", "{$ZONE}:53 {\n whoami\n}\n", "1.15.0", nil, Question{Name: "from-the-deployment.test", Client: netip.MustParseAddr("10.1.1.1")}, "NOERROR; by whoami"},
		{"most specific block", "b.test:53 {\n whoami\n}\na.b.test:53 {\n errors\n cache\n}\n.:53 {\n whoami\n}\n", "1.15.0", nil, Question{Name: "x.a.b.test"}, "SERVFAIL; by block 1 cache"},
		{"block without plugin", "a.test:53 {\n reload\n}\n.:53 {\n whoami\n}\n", "1.15.0", nil, Question{Name: "x.a.test"}, "REFUSED; by no block"},
		{"no block", "a.test:53 {\n whoami\n}\n", "1.15.0", nil, Question{Name: "b.test"}, "REFUSED; by no block"},
		{"empty", "", "1.15.0", nil, Question{Name: "b.test"}, "NOERROR; by whoami"},
		{"capitals up to 1.14.6", "A.test:53 {\n whoami\n}\n", "1.14.6", nil, Question{Name: "x.a.test"}, "REFUSED; by no block"},
		{"capitals from 1.14.7", "A.test:53 {\n whoami\n}\n", "1.14.7", nil, Question{Name: "x.a.test"}, "NOERROR; by whoami"},
		{"other port", "a.test:53 {\n whoami\n}\n.:1053 {\n template ANY ANY . {\n  rcode NXDOMAIN\n }\n}\n", "1.15.0", nil, Question{Name: "a.test", Server: netip.MustParseAddrPort("0.0.0.0:1053")}, "NXDOMAIN; by block 1 template"},
		{"over TLS", "tls://.:853 {\n tls /etc/cert /etc/key\n template ANY ANY . {\n  rcode NXDOMAIN\n }\n}\n", "1.14.6", nil, Question{Name: "a.test", Server: netip.AddrPortFrom(netip.Addr{}, 853)}, "NXDOMAIN; by template"},
		{
			"bind", ".:53 {\n bind 169.254.20.10\n template ANY ANY . {\n  rcode NXDOMAIN\n }\n}\n.:53 {\n bind eth0\n whoami\n}\n", "1.15.0", nil,
			Question{Name: "a.test", Server: netip.MustParseAddrPort("169.254.20.10:53")},
			"NXDOMAIN; by template",
		},
		{
			"view", ".:53 {\n view inside {\n  expr incidr(client_ip(), '10.244.0.0/16')\n }\n template ANY ANY . {\n  rcode NXDOMAIN\n }\n}\n.:53 {\n whoami\n}\n", "1.15.0", nil,
			Question{Name: "a.test", Client: netip.MustParseAddr("10.244.2.9")},
			"NXDOMAIN; by template",
		},
		{
			"view of others", ".:53 {\n view inside {\n  expr incidr(client_ip(), '10.244.0.0/16')\n }\n template ANY ANY . {\n  rcode NXDOMAIN\n }\n}\n.:53 {\n whoami\n}\n", "1.15.0", nil,
			Question{Name: "a.test", Client: netip.MustParseAddr("10.1.1.1")},
			"NOERROR; by block 1 whoami",
		},
		{"acl", ".:53 {\n acl {\n  block net 10.0.0.0/8\n }\n whoami\n}\n", "1.15.0", nil, Question{Name: "a.test", Client: netip.MustParseAddr("10.1.1.1")}, "REFUSED; by acl"},
		{"acl of others", ".:53 {\n acl {\n  block net 10.0.0.0/8\n }\n whoami\n}\n", "1.15.0", nil, Question{Name: "a.test", Client: netip.MustParseAddr("192.0.2.9")}, "NOERROR; by whoami"},
		// Up to 1.14.1 rewrite runs after acl, so the rule sees the name of the client.
		{"acl before rewrite", ".:53 {\n rewrite name a.test b.test\n acl a.test {\n  block\n }\n whoami\n}\n", "1.11.3", nil, Question{Name: "a.test"}, "REFUSED; by acl"},
		{"acl after rewrite", ".:53 {\n rewrite name a.test b.test\n acl a.test {\n  block\n }\n whoami\n}\n", "1.15.0", nil, Question{Name: "a.test"}, "NOERROR; by whoami"},
		{
			"autopath", ".:53 {\n autopath @kubernetes\n kubernetes cluster.local {\n  pods verified\n }\n forward . 203.0.113.1\n}\n", "1.15.0", address,
			Question{Name: "db.prod.svc.cluster.local.prod.svc.cluster.local", Client: netip.MustParseAddr("10.244.2.9")},
			"NOERROR; db.prod.svc.cluster.local.prod.svc.cluster.local. CNAME db.prod.svc.cluster.local.; db.prod.svc.cluster.local. A 10.244.1.5; by autopath",
		},
		{"external plugin", ".:53 {\n blocklist all\n whoami\n}\n", "1.15.0", nil, Question{Name: "a.test"}, `NOERROR; by whoami; unknown: the plugin "blocklist" is not part of CoreDNS`},
		{"secondary", "a.test:53 {\n secondary {\n  transfer from 203.0.113.1\n }\n}\n", "1.15.0", nil, Question{Name: "www.a.test"}, "NXDOMAIN; by secondary; unknown: what the plugin secondary answers is not known"},
		{"namespaces option", ".:53 {\n kubernetes cluster.local {\n  namespaces prod\n }\n}\n", "1.15.0", nil, Question{Name: "web.default.svc.cluster.local"}, "NXDOMAIN; by kubernetes"},
		{"labels option", ".:53 {\n kubernetes cluster.local {\n  labels app=web\n }\n}\n", "1.15.0", nil, Question{Name: "db.prod.svc.cluster.local"}, "NXDOMAIN; by kubernetes"},
		{"other zone", ".:53 {\n kubernetes cluster.b {\n  endpoint https://203.0.113.1:6443\n  kubeconfig /nonexistent\n }\n}\n", "1.15.0", nil, Question{Name: "web.default.svc.cluster.b"}, "NOERROR; web.default.svc.cluster.b. A 10.96.0.7; by kubernetes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			config := configOf(t, tt.corefile, tt.version, files)
			config.Upstream = tt.upstream
			j := begin(t, config)
			a, err := j.Ask(t.Context(), tt.question)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, show(a)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAliasLoop asks for Services that point at one another: the server ends the chain.
func TestAliasLoop(t *testing.T) {
	j := begin(t, configOf(t, kubeadm, "1.15.0", nil))
	a, err := j.Ask(t.Context(), Question{Name: "one.default.svc.cluster.local"})
	if err != nil {
		t.Fatal(err)
	}
	if a.Plugin != "kubernetes" || len(a.Path) > 100 {
		t.Errorf("%s, with %d visits", show(a), len(a.Path))
	}
}

func TestPath(t *testing.T) {
	config := configOf(t, kubeadm, "1.15.0", nil)
	config.Upstream = known
	j := begin(t, config)
	a, err := j.Ask(t.Context(), Question{Name: "outside.default.svc.cluster.local"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range a.Path {
		got = append(got, fmt.Sprintf("%d %s %s", v.Depth, v.Plugin, v.Name))
	}
	want := []string{
		"0 prometheus outside.default.svc.cluster.local.", "0 errors outside.default.svc.cluster.local.",
		"0 loadbalance outside.default.svc.cluster.local.", "0 cache outside.default.svc.cluster.local.",
		"0 kubernetes outside.default.svc.cluster.local.",
		"1 prometheus www.example.org.", "1 errors www.example.org.", "1 loadbalance www.example.org.",
		"1 cache www.example.org.", "1 kubernetes www.example.org.", "1 loop www.example.org.", "1 forward www.example.org.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a.Block == nil || a.Block.Position.String() != "ConfigMap kube-system/coredns Corefile:1:1" {
		t.Errorf("block %+v", a.Block)
	}
}

// TestCache shows that questions do not depend on one another unless that is asked for, and what it is for: 1.14.2 to
// 1.14.6 answered blocked clients from the cache.
func TestCache(t *testing.T) {
	const corefile = ".:53 {\n acl {\n  block net 10.0.0.0/8\n }\n cache\n forward . 203.0.113.1\n}\n"
	allowed, blocked := netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("10.1.1.1")
	for _, tt := range []struct {
		version string
		cache   bool
		want    string
	}{
		{"1.14.1", true, "REFUSED; by acl"},
		{"1.14.2", true, "NOERROR; a.test. A 198.51.100.1; by cache"},
		{"1.14.6", true, "NOERROR; a.test. A 198.51.100.1; by cache"},
		{"1.14.7", true, "REFUSED; by acl"},
		{"1.14.6", false, "REFUSED; by acl"},
	} {
		config := configOf(t, corefile, tt.version, nil)
		config.Upstream, config.Cache = address, tt.cache
		j := begin(t, config)
		var last Answer
		for _, client := range []netip.Addr{allowed, blocked} {
			var err error
			if last, err = j.Ask(t.Context(), Question{Name: "a.test", Client: client}); err != nil {
				t.Fatal(err)
			}
		}
		if got := show(last); got != tt.want {
			t.Errorf("%s, cache %t: %s, want %s", tt.version, tt.cache, got, tt.want)
		}
	}
}

func TestTruncated(t *testing.T) {
	config := configOf(t, ".:53 {\n forward . 203.0.113.1\n}\n", "1.15.0", nil)
	config.Upstream = func(e Exchange) Reply {
		var r Reply
		for i := range 60 {
			rr, err := dns.NewRR(fmt.Sprintf("%s 60 IN A 198.51.100.%d", e.Name, i))
			if err != nil {
				t.Error(err)
			}
			r.Records = append(r.Records, rr)
		}
		return r
	}
	j := begin(t, config)
	for _, tt := range []struct {
		q    Question
		want bool
	}{
		{Question{Name: "a.test"}, true},
		{Question{Name: "a.test", UDPSize: 1232}, false},
		{Question{Name: "a.test", TCP: true}, false},
	} {
		a, err := j.Ask(t.Context(), tt.q)
		if err != nil {
			t.Fatal(err)
		}
		if a.Truncated != tt.want || !tt.want && len(a.Answer) != 60 {
			t.Errorf("%+v: %d records, truncated %t", tt.q, len(a.Answer), a.Truncated)
		}
	}
}

func TestAbsent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*cluster.Snapshot)
		ask    string
		want   string
	}{
		{
			"services", func(s *cluster.Snapshot) { s.Absent[cluster.Services] = "forbidden" }, "nope.default.svc.cluster.local",
			"NXDOMAIN; by kubernetes; unknown: services were not read: forbidden",
		},
		{
			"slices of a headless Service", func(s *cluster.Snapshot) { s.Absent[cluster.EndpointSlices], s.EndpointSlices = "forbidden", nil }, "db.prod.svc.cluster.local",
			"NXDOMAIN; by kubernetes; unknown: the EndpointSlices of Service prod/db are not in the snapshot",
		},
		{
			"slices of another", func(s *cluster.Snapshot) { s.Absent[cluster.EndpointSlices], s.EndpointSlices = "forbidden", nil }, "web.default.svc.cluster.local",
			"NOERROR; web.default.svc.cluster.local. A 10.96.0.7; by kubernetes",
		},
		{
			"namespaces of a selection", func(s *cluster.Snapshot) { s.Partial, s.Namespaces = true, nil }, "prod.svc.cluster.local",
			"NOERROR; by kubernetes",
		},
		{
			"the API server of a selection", func(s *cluster.Snapshot) { s.Partial = true }, "kubernetes.default.svc.cluster.local",
			"NOERROR; kubernetes.default.svc.cluster.local. A 192.0.2.255; by kubernetes",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := world(kubeadm, "v1.15.0", nil)
			tt.change(s)
			j := begin(t, Config{Corefile: corefileOf(t, s), Snapshot: s})
			a, err := j.Ask(t.Context(), Question{Name: tt.ask})
			if err != nil {
				t.Fatal(err)
			}
			if got := show(a); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestLookup walks a search list with the judge as the server.
func TestLookup(t *testing.T) {
	config := configOf(t, kubeadm, "1.15.0", nil)
	config.Upstream = address
	j := begin(t, config)
	cfg := resolve.Config{Search: []string{"default.svc.cluster.local.", "svc.cluster.local.", "cluster.local."}, NDots: 5}
	var asked []string
	ask := func(name string) resolve.Answer {
		l, err := j.Lookup(t.Context(), Question{Name: name})
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, name+" "+l.Answer.String())
		return l.Answer
	}
	res := resolve.Walk(resolve.Resolver{Library: resolve.Glibc}, cfg, "example.com", ask)
	want := []string{
		"example.com.default.svc.cluster.local. NXDOMAIN", "example.com.svc.cluster.local. NXDOMAIN",
		"example.com.cluster.local. NXDOMAIN", "example.com. address 198.51.100.1",
	}
	if diff := cmp.Diff(want, asked); diff != "" || res.Status != resolve.Resolved {
		t.Errorf("%v (-want +got):\n%s", res.Status, diff)
	}
	r := begin(t, configOf(t, ".:53 {\n rewrite name suffix .shop.test .default.svc.cluster.local\n kubernetes cluster.local\n}\n", "1.15.0", nil))
	l, err := r.Lookup(t.Context(), Question{Name: "web.shop.test"})
	if err != nil {
		t.Fatal(err)
	}
	if g, m := l.For(resolve.Glibc).String(), l.For(resolve.Musl).String(); !l.Foreign || g != "NODATA" || m != "address 10.96.0.7" {
		t.Errorf("an answer of another name: foreign %t, glibc %s, musl %s", l.Foreign, g, m)
	}
	l, err = j.Lookup(t.Context(), Question{Name: "planned.prod.svc.cluster.local"})
	if err != nil {
		t.Fatal(err)
	}
	if l.Answer.A.Records != resolve.Address || len(l.Answer.Addresses) > 0 {
		t.Errorf("a Service without an address: %+v", l.Answer)
	}
}

func TestNotices(t *testing.T) {
	j := begin(t, configOf(t, "a.test:53 {\n blocklist all\n dnssec\n file /etc/secret/zone.db\n whoami\n}\n", "1.15.0", nil))
	var got []string
	for _, n := range j.Notices() {
		got = append(got, fmt.Sprintf("%d:%d %s %s", n.Position.Line, n.Position.Col, n.Kind, n.Plugin))
	}
	if diff := cmp.Diff([]string{"2:2 external blocklist", "3:2 skipped dnssec", "4:2 unjudged file"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, corefile, version, want string
		certain                       bool
	}{
		{"unknown property", ".:53 {\n  forward . 203.0.113.1 {\n    max_fail 3\n  }\n}\n", "1.15.0", "3:5: unknown property 'max_fail'", true},
		{"missing argument", ".:53 {\n  forward .\n}\n", "1.15.0", "2:11: Wrong argument count or unexpected line ending after '.'", true},
		{"by an older release", ".:53 {\n  kubernetes cluster.local {\n    resyncperiod 5m\n  }\n}\n", "1.6.2", "3:5: unknown property 'resyncperiod'", false},
		{"too new a plugin", ".:53 {\n  view a {\n    expr true\n  }\n}\n", "1.9.3", "2:3: Unknown directive 'view'", true},
		{"too new a property", ".:53 {\n  forward . 203.0.113.1 {\n    failover REFUSED\n  }\n}\n", "1.12.4", "3:5: unknown property 'failover'", true},
		{"too new a zone", ".:53 {\n  kubernetes cluster.local {\n    multicluster cluster.local\n  }\n}\n", "1.12.1", "3:5: unknown property 'multicluster'", true},
		{"removed plugin", ".:53 {\n  federation cluster.local\n}\n", "1.15.0", "2:3: Unknown directive 'federation'", true},
		{"two of a zone", "a.test:53 {\n  whoami\n}\na.test:53 {\n  whoami\n}\n", "1.15.0", "4:1: cannot serve dns://a.test.:53 - it is already defined", true},
		{"zone", "a..test:53 {\n  whoami\n}\n", "1.15.0", "1:1: ", true},
		{"syntax", ".:53 {\n  whoami\n", "1.15.0", "2:", true},
		{"stand-in", ".:53 {\n  health :8080 :8081\n}\n", "1.15.0", "2:16: Wrong argument count or unexpected line ending after ':8081'", true},
		{"stand-in property", ".:53 {\n  health {\n    lame 5s\n  }\n}\n", "1.15.0", "3:5: unknown property 'lame'", true},
		{"stand-in address", ".:53 {\n  prometheus 9153\n}\n", "1.15.0", "2:3: address 9153: missing port in address", true},
		{"plain message", ".:53 {\n  rewrite name regex ( b.test\n}\n", "1.15.0", "2:3: ", true},
		{"too many upstreams", ".:53 {\n  forward . 192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5 192.0.2.6 192.0.2.7 192.0.2.8 192.0.2.9 192.0.2.10 192.0.2.11 192.0.2.12 192.0.2.13 192.0.2.14 192.0.2.15 192.0.2.16\n}\n", "1.15.0", "2:3: more than 15 TOs configured: 16", true},
		{"host name too early", ".:53 {\n  forward . dns.example.org\n}\n", "1.14.3", `2:13: not an IP address or file "dns.example.org"`, true},
		{"protocol", ".:53 {\n  forward . grpc://203.0.113.1\n}\n", "1.15.0", "2:3: 'grpc' is not supported as a destination protocol in forward: grpc://203.0.113.1", true},
		{"path", ".:53 {\n  forward . https://203.0.113.1/dns\n}\n", "1.15.0", "2:3: paths are not allowed in HTTPS upstream addresses (the /dns-query path is used by default): https://203.0.113.1/dns", true},
		{"missing list of servers", ".:53 {\n  forward . /etc/extra/nothing\n}\n", "1.15.0", `2:13: not an IP address or file "/etc/extra/nothing": no such file`, true},
		{"imported", ".:53 {\n  import /etc/extra/bad\n}\n", "1.15.0", "1:1: ", true},
		{"autopath", ".:53 {\n  autopath @hosts\n  hosts\n}\n", "1.15.0", "2:3: hosts does not implement the AutoPather interface", true},
		{"missing template answer", ".:53 {\n  template IN A a.test {\n    answer\n  }\n}\n", "1.15.0", "3:5: Wrong argument count or unexpected line ending after 'answer'", true},
		{"words with line breaks", ".:53 {\n  template IN A a.test {\n    answer \"{{ .Name }} 60\n IN A 192.0.2.1\"\n    nothing\n  }\n}\n", "1.15.0", "5:5: Wrong argument count or unexpected line ending after 'nothing'", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j, err := Start(t.Context(), configOf(t, tt.corefile, tt.version, map[string]string{"bad": "forward\n"}))
			if err == nil {
				_ = j.Stop(t.Context())
				t.Fatal("the judge has started")
			}
			var r *Refusal
			if !errors.As(err, &r) {
				t.Fatalf("%T: %v", err, err)
			}
			source := "ConfigMap kube-system/coredns Corefile:"
			if tt.name == "imported" {
				source = "ConfigMap kube-system/extra bad:"
			}
			if !strings.HasPrefix(r.Error(), source+tt.want) {
				t.Errorf("got  %s\nwant %s", r.Error(), source+tt.want)
			}
			if r.Certain != tt.certain {
				t.Errorf("certain is %t", r.Certain)
			}
		})
	}
}

// TestLogger shows that CoreDNS says nothing, and that the standard logger is what it was afterwards.
func TestLogger(t *testing.T) {
	before := log.Writer()
	defer log.SetOutput(before)
	var logged bytes.Buffer
	log.SetOutput(&logged)
	j := begin(t, configOf(t, ".:53 {\n log\n errors\n hosts /etc/extra/nothing\n}\n", "1.15.0", nil))
	if _, err := j.Ask(t.Context(), Question{Name: "a.test"}); err != nil {
		t.Fatal(err)
	}
	other := begin(t, configOf(t, kubeadm, "1.15.0", nil))
	if err := errors.Join(other.Stop(t.Context()), j.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	if logged.Len() > 0 || log.Writer() != &logged {
		t.Errorf("logged %q, to %T", logged.String(), log.Writer())
	}
}

func TestOrder(t *testing.T) {
	if diff := cmp.Diff(dnsserver.Directives, Order(Release())); diff != "" {
		t.Errorf("the last release has another order than what is linked in (-linked +table):\n%s", diff)
	}
	position := func(version, name string) int {
		v, _ := resolve.ParseVersion(version)
		return slices.Index(Order(v), name)
	}
	for _, tt := range []struct {
		version, first, second string
	}{
		{"1.14.1", "acl", "rewrite"},
		{"1.14.2", "rewrite", "acl"},
		{"1.14.2", "cache", "acl"},
		{"1.14.6", "cache", "acl"},
		{"1.14.7", "acl", "cache"},
		{"1.6.0", "template", "kubernetes"},
		{"1.5.0", "template", "kubernetes"},
		{"9.9.9", "acl", "cache"},
	} {
		if a, b := position(tt.version, tt.first), position(tt.version, tt.second); a < 0 || b < 0 || a > b {
			t.Errorf("%s: %s is at %d, %s at %d", tt.version, tt.first, a, tt.second, b)
		}
	}
	since, dropped, known := knownIn("federation")
	if !known || since.String() != "1.6.0" || dropped.String() != "1.7.0" {
		t.Errorf("federation: %v %v %t", since, dropped, known)
	}
	if since, dropped, known := knownIn("view"); !known || since.String() != "1.10.0" || dropped.Known() {
		t.Errorf("view: %v %v %t", since, dropped, known)
	}
}
