package trace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"github.com/santhosh-tekuri/jsonschema/v6"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose/encode"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

const kubeadm = `.:53 {
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    forward . 192.0.2.53
    cache 30
}
`

const (
	// nodeConfig gives pods the search domain corp.example.
	nodeConfig = "search corp.example\nnameserver 192.0.2.53\n"
	// upstreamCorefile answers one name in it.
	upstreamCorefile = "corp.example {\n    hosts {\n        192.0.2.77 my-app.corp.example\n    }\n}\n"
)

// world is a cluster with CoreDNS 1.11.3 in which a workload of namespace shop calls my-app, of which only a namespace and
// a Service elsewhere are left.
func world(corefile string, texts ...*cluster.Text) *cluster.Snapshot {
	s := &cluster.Snapshot{Name: "test", Absent: map[cluster.Resource]string{}, Texts: texts}
	for _, name := range []string{"default", "kube-system", "my-app", "shop", "backoffice"} {
		s.Namespaces = append(s.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	service := func(namespace, name, ip string) *corev1.Service {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		svc.Spec.Type, svc.Spec.ClusterIP, svc.Spec.ClusterIPs = corev1.ServiceTypeClusterIP, ip, []string{ip}
		svc.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}}
		s.Services = append(s.Services, svc)
		return svc
	}
	service("backoffice", "my-app", "10.96.0.77")
	service("shop", "web", "10.96.0.7")
	server := service("kube-system", "kube-dns", "10.96.0.10")
	server.Labels, server.Spec.Selector = map[string]string{"k8s-app": "kube-dns"}, map[string]string{"k8s-app": "kube-dns"}
	server.Spec.Ports = []corev1.ServicePort{{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}}
	s.ConfigMaps = append(s.ConfigMaps, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}, Data: map[string]string{"Corefile": corefile},
	})
	volume := corev1.Volume{Name: "config"}
	volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "coredns"}}
	s.Templates = append(s.Templates,
		&cluster.Workload{
			Object: finding.Object{Kind: "Deployment", Namespace: "kube-system", Name: "coredns"},
			Labels: map[string]string{"k8s-app": "kube-dns"},
			Spec: &corev1.PodSpec{
				Containers: []corev1.Container{{
					Name: "coredns", Image: "registry.k8s.io/coredns/coredns:v1.11.3", Args: []string{"-conf", "/etc/coredns/Corefile"},
					VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/coredns"}},
				}},
				Volumes: []corev1.Volume{volume},
			},
		},
		&cluster.Workload{
			Object: finding.Object{Kind: "Deployment", Namespace: "shop", Name: "front"},
			Spec:   &corev1.PodSpec{DNSConfig: &corev1.PodDNSConfig{Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("1")}}}},
		},
	)
	return s
}

func node() *cluster.Text {
	return &cluster.Text{Kind: cluster.TextNodeResolvConf, Name: "resolv.conf", Data: nodeConfig}
}

func upstreamText() *cluster.Text {
	return &cluster.Text{Kind: cluster.TextUpstreamCorefile, Name: "upstream.Corefile", Data: upstreamCorefile}
}

func traced(t *testing.T, o Options) *Trace {
	t.Helper()
	if o.Resolvers == nil {
		o.Resolvers = []resolve.Library{resolve.Glibc, resolve.Musl, resolve.Go}
	}
	tr, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// lines are the queries in short: number, name, who answered, answer, actions of glibc, musl and Go.
func lines(w Walk) []string {
	var list []string
	for _, q := range w.Queries {
		list = append(list, strings.Join(strings.Fields(fmt.Sprintf("%d %s %s %s %v %s %s/%s/%s", q.Number, q.Name, q.Block, q.Plugin, q.Upstream,
			q.Text, q.Actions["glibc"], q.Actions["musl"], q.Actions["go"])), " "))
	}
	return list
}

func verdicts(w Walk) []string {
	var list []string
	for _, r := range w.Resolvers {
		list = append(list, strings.TrimSpace(r.Resolver+" "+r.Verdict+" "+strings.Join(r.Addresses, " ")+" "+r.Code))
	}
	return list
}

// The sketch of the command: glibc and Go find the name by a later search domain, musl stops at the namespace.
func TestPartWays(t *testing.T) {
	tr := traced(t, Options{Snapshot: world(kubeadm, node(), upstreamText()), Name: "my-app", Namespace: "shop"})
	want := []string{
		"1 my-app.shop.svc.cluster.local. .:53 kubernetes [] NXDOMAIN next/next/next",
		"2 my-app.svc.cluster.local. .:53 kubernetes [] NODATA next/stop/next",
		"3 my-app.cluster.local. .:53 kubernetes [] NXDOMAIN next//next",
		"4 my-app.corp.example. .:53 forward [192.0.2.53] 192.0.2.77 take//take",
	}
	if diff := cmp.Diff(want, lines(tr.Walk)); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"glibc resolves 192.0.2.77", "musl fails  DM1002", "go resolves 192.0.2.77"}, verdicts(tr.Walk)); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if got, want := tr.Walk.Parting(), "at query 2 glibc and Go go on, musl stops"; got != want {
		t.Errorf("parting %q, want %q", got, want)
	}
	if got, want := tr.Server.Text, "judged by CoreDNS 1.15.0 in the plugin order of 1.11.3"; got != want {
		t.Errorf("server %q, want %q", got, want)
	}
	if !tr.Failed() {
		t.Error("the trace is no failure, though musl fails")
	}
	if tr.Fix == nil {
		t.Fatal("there is no fix")
	}
	want = []string{"1 my-app.shop.svc.cluster.local. .:53 kubernetes [] 10.96.0.77 take/take/take"}
	if diff := cmp.Diff(want, lines(tr.Fix.Walk)); diff != "" {
		t.Errorf("queries after the fix (-want +got):\n%s", diff)
	}
	var svc corev1.Service
	if err := yaml.UnmarshalStrict([]byte(tr.Fix.Manifest), &svc); err != nil {
		t.Fatal(err)
	}
	if svc.Namespace != "shop" || svc.Name != "my-app" || svc.Spec.ExternalName != "my-app.backoffice.svc.cluster.local" {
		t.Errorf("the fix is %s/%s to %s", svc.Namespace, svc.Name, svc.Spec.ExternalName)
	}
}

func TestVerdicts(t *testing.T) {
	all := func(s string) []string { return []string{"glibc " + s, "musl " + s, "go " + s} }
	tests := []struct {
		name    string
		options Options
		want    []string
		queries int
	}{
		{"found at once", Options{Snapshot: world(kubeadm), Name: "web", Namespace: "shop"}, all("resolves 10.96.0.7"), 1},
		{"case of the name", Options{Snapshot: world(kubeadm), Name: "WEB", Namespace: "shop"}, all("resolves 10.96.0.7"), 1},
		{"namespace of the node unknown", Options{Snapshot: world(kubeadm), Name: "my-app", Namespace: "shop"}, all("fails  DM1002"), 5},
		{"not known upstream", Options{Snapshot: world(kubeadm, node()), Name: "www.example.org.", Namespace: "shop"}, all("depends"), 1},
		{"address", Options{Snapshot: world(kubeadm), Name: "192.0.2.1", Namespace: "shop"}, all("resolves"), 0},
		{
			"ndots of the workload",
			Options{
				Snapshot: world(kubeadm, node(), upstreamText()), Name: "web.shop", Namespace: "shop",
				From: finding.Object{Kind: "Deployment", Name: "front"},
			},
			[]string{"glibc resolves 10.96.0.7", "musl fails", "go resolves 10.96.0.7"},
			3,
		},
		{
			"policy of a node",
			Options{Snapshot: world(kubeadm, node()), Name: "web", Namespace: "shop", Policy: resolve.PolicyDefault},
			all("depends"), 2,
		},
		{
			"service record",
			Options{Snapshot: world(kubeadm, node(), upstreamText()), Name: "_http._tcp.web", Namespace: "shop", Type: dns.TypeSRV},
			[]string{"glibc resolves", "musl fails", "go resolves"},
			2,
		},
		{"one type", Options{Snapshot: world(kubeadm, node(), upstreamText()), Name: "web.shop.svc.cluster.local", Namespace: "shop", Type: dns.TypeAAAA}, all("fails"), -1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tr := traced(t, test.options)
			if diff := cmp.Diff(test.want, verdicts(tr.Walk)); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s\n%s", diff, strings.Join(lines(tr.Walk), "\n"))
			}
			if test.queries >= 0 && len(tr.Walk.Queries) != test.queries {
				t.Errorf("%d queries, want %d:\n%s", len(tr.Walk.Queries), test.queries, strings.Join(lines(tr.Walk), "\n"))
			}
		})
	}
}

// What the judge does not load is answered by the model, with a note that says why.
func TestFallback(t *testing.T) {
	broken := strings.Replace(kubeadm, "cache 30", "cache 30 {\n        bogus\n    }", 1)
	tr := traced(t, Options{Snapshot: world(broken, node()), Name: "web", Namespace: "shop"})
	if tr.Server.Judge != ByModel || tr.Server.Text != "from the model of CoreDNS 1.11.3" {
		t.Errorf("answers come %s (%s)", tr.Server.Text, tr.Server.Judge)
	}
	if !slices.ContainsFunc(tr.Notes, func(n string) bool { return strings.Contains(n, "does not load the Corefile") }) {
		t.Errorf("no note says why: %q", tr.Notes)
	}
	if diff := cmp.Diff([]string{"glibc resolves 10.96.0.7", "musl resolves 10.96.0.7", "go resolves 10.96.0.7"}, verdicts(tr.Walk)); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// Queries reach the port to which the Service sends them. Where nothing listens, no judge is asked.
func TestPort(t *testing.T) {
	s := world(strings.Replace(kubeadm, ".:53", ".:1053", 1), node())
	i := slices.IndexFunc(s.Services, func(svc *corev1.Service) bool { return svc.Namespace == "kube-system" })
	s.Services[i].Spec.Ports[0].TargetPort = intstr.FromInt32(1053)
	tr := traced(t, Options{Snapshot: s, Name: "web", Namespace: "shop"})
	if tr.Server.Judge != ByCoreDNS || tr.Failed() || tr.Walk.Queries[0].Block != ".:1053" {
		t.Errorf("%s: %q", tr.Server.Text, lines(tr.Walk))
	}

	s.Services[i].Spec.Ports[0].TargetPort = intstr.FromInt32(2053)
	tr = traced(t, Options{Snapshot: s, Name: "web", Namespace: "shop"})
	if tr.Server.Judge != ByModel {
		t.Errorf("answers come %s", tr.Server.Text)
	}
	if !slices.ContainsFunc(tr.Notes, func(n string) bool { return strings.Contains(n, "no server block listens there") }) {
		t.Errorf("no note says why: %q", tr.Notes)
	}
}

// Names of which the snapshot says nothing are not taken to be missing.
func TestUnread(t *testing.T) {
	s := world(kubeadm, node(), upstreamText())
	s.Services, s.Absent[cluster.Services] = nil, "forbidden"
	s.Override.Implementation = cluster.CoreDNS
	tr := traced(t, Options{Snapshot: s, Name: "web", Namespace: "shop"})
	if diff := cmp.Diff([]string{"glibc depends", "musl depends", "go depends"}, verdicts(tr.Walk)); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s\n%s", diff, strings.Join(lines(tr.Walk), "\n"))
	}
}

// The judge and the model agree about names under the cluster domain.
func TestModelAgrees(t *testing.T) {
	for _, name := range []string{"web", "my-app", "web.shop", "nobody", "my-app.backoffice.svc.cluster.local"} {
		judged := traced(t, Options{Snapshot: world(kubeadm, node(), upstreamText()), Name: name, Namespace: "shop"})
		s := world(kubeadm, node(), upstreamText())
		s.ConfigMaps, s.Templates = nil, nil
		s.Override.Implementation = cluster.CoreDNS
		modelled := traced(t, Options{Snapshot: s, Name: name, Namespace: "shop"})
		if judged.Server.Judge != ByCoreDNS || modelled.Server.Judge != ByModel {
			t.Fatalf("%s by %s and %s", name, judged.Server.Text, modelled.Server.Text)
		}
		if diff := cmp.Diff(verdicts(judged.Walk), verdicts(modelled.Walk)); diff != "" {
			t.Errorf("%s: verdicts (-judge +model):\n%s", name, diff)
		}
	}
}

func TestRefused(t *testing.T) {
	nobody := world(kubeadm)
	nobody.Services, nobody.ConfigMaps, nobody.Templates = nil, nil, nil
	unread := world(kubeadm)
	unread.Absent[cluster.Pods] = "forbidden"
	tests := []struct {
		name    string
		options Options
		want    string
	}{
		{"name", Options{Snapshot: world(kubeadm), Name: "a..b"}, "is no host name"},
		{"namespace", Options{Snapshot: world(kubeadm), Name: "web", Namespace: "none"}, `there is no namespace "none"`},
		{"server", Options{Snapshot: nobody, Name: "web"}, "no DNS server was found"},
		{"workload", Options{Snapshot: world(kubeadm), Name: "web", Namespace: "shop", From: finding.Object{Kind: "Pod", Name: "x"}}, "there is no Pod shop/x"},
		{"pods", Options{Snapshot: unread, Name: "web", Namespace: "shop", From: finding.Object{Kind: "Pod", Name: "x"}}, "pods were not read: forbidden"},
		{"policy", Options{Snapshot: world(kubeadm), Name: "web", Policy: resolve.PolicyNone}, "needs nameservers"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.options.Resolvers = []resolve.Library{resolve.Go}
			_, err := Run(t.Context(), test.options)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestSchema(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "trace.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("trace.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("trace.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(data []byte) error {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(doc)
	}
	for _, o := range []Options{
		{Snapshot: world(kubeadm, node(), upstreamText()), Name: "my-app", Namespace: "shop"},
		{Snapshot: world(kubeadm), Name: "192.0.2.1"},
		{Snapshot: world(kubeadm), Name: "my-app", Policy: resolve.PolicyDefault},
		{Snapshot: world(kubeadm), Name: "web", Namespace: "shop", From: finding.Object{Kind: "Deployment", Name: "front"}, Type: dns.TypeSRV},
	} {
		tr := traced(t, o)
		var j, y bytes.Buffer
		if err := encode.DocumentJSON(&j, tr); err != nil {
			t.Fatal(err)
		}
		if err := encode.DocumentYAML(&y, tr); err != nil {
			t.Fatal(err)
		}
		fromYAML, err := yaml.YAMLToJSON(y.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range [][]byte{j.Bytes(), fromYAML} {
			if err := check(data); err != nil {
				t.Errorf("%s: %v\n%s", o.Name, err, data)
			}
		}
		for _, change := range [][2]string{
			{`"kind": "Trace"`, `"kind": "Report"`},
			{`"verdict": "`, `"verdict": "un`},
			{`"ndots": `, `"ndots": -`},
		} {
			changed := bytes.ReplaceAll(j.Bytes(), []byte(change[0]), []byte(change[1]))
			if bytes.Equal(changed, j.Bytes()) {
				t.Errorf("%s: nothing reads %s", o.Name, change[0])
			} else if check(changed) == nil {
				t.Errorf("%s: the schema accepts %s", o.Name, change[1])
			}
		}
	}
}

// No name can add a line or a statement to a diagram.
func TestMermaidHostile(t *testing.T) {
	const hostile = "a\nparticipant X as y; %% #35;<b>\x1b[31m"
	tr := &Trace{
		Server: Server{Implementation: hostile},
		Walk: Walk{
			Queries:   []Query{{Number: 1, Name: hostile, Text: hostile, Actions: map[string]string{"go": "take"}}},
			Resolvers: []Result{{Resolver: "go", Text: hostile}},
		},
	}
	var b bytes.Buffer
	if err := Mermaid(&b, tr); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(b.String(), "\n"), 6; got != want {
		t.Errorf("%d lines, want %d:\n%s", got, want, b.String())
	}
	if strings.ContainsAny(b.String(), "<\x1b%") {
		t.Errorf("a character of a name stands in the diagram as it is:\n%s", b.String())
	}
}

// BenchmarkLarge traces over 10,000 Services. With the walk after the fix CoreDNS starts twice.
func BenchmarkLarge(b *testing.B) {
	s := world(kubeadm, node(), upstreamText())
	for i := range 10_000 {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("service-%d", i)}}
		svc.Spec.ClusterIP = fmt.Sprintf("10.97.%d.%d", i/250, i%250)
		svc.Spec.ClusterIPs = []string{svc.Spec.ClusterIP}
		s.Services = append(s.Services, svc)
	}
	for b.Loop() {
		tr, err := Run(b.Context(), Options{Snapshot: s, Name: "my-app", Namespace: "shop", Resolvers: []resolve.Library{resolve.Glibc, resolve.Musl, resolve.Go}})
		if err != nil {
			b.Fatal(err)
		}
		if tr.Fix == nil || tr.Server.Judge != ByCoreDNS {
			b.Fatalf("fix %v, %s", tr.Fix, tr.Server.Text)
		}
	}
}
